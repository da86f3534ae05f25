// SPDX-License-Identifier: Apache-2.0
// ReadManifests: the Kubernetes objects of files, folders (with all below them: *.yaml, *.yml,
// *.json) and standard input ("-"). Lists are taken apart. What is wrong is a Finding and costs the
// rest nothing.
//
// Thread: one. Bounds: kMaxFileBytes of a file. kustomization.yaml is left out: it is no object of
// the cluster. Symbolic links to folders are not followed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace flamefleet::render {

inline constexpr size_t kMaxFileBytes = 32 << 20;

// Where an object stands.
struct Source {
  std::string file;  // "-": standard input
  int document = 0;  // from 1; 0: the file as a whole
  int item = 0;      // of a List, from 1; 0: none

  std::string Text() const;  // "apps.yaml, document 2, item 1"
  friend auto operator<=>(const Source&, const Source&) = default;
};

struct Manifest {
  Source source;
  nlohmann::json object;  // has apiVersion, kind and metadata
};

// Something invalid.
struct Finding {
  Source source;
  std::string object;  // "Deployment shop/payments"; empty: not known
  std::string field;   // "spec.profiles[0].mode"; empty: the object as a whole
  std::string cause;
};

struct Manifests {
  std::vector<Manifest> objects;
  std::vector<Finding> findings;
};

// Each path has something to say: one that is empty, as the output of a command that failed is, is
// a finding.
Manifests ReadManifests(const std::vector<std::string>& paths);

// "Deployment shop/payments"
std::string ObjectText(const nlohmann::json& object);
// A field that is text; empty when it is absent or something else.
std::string TextOf(const nlohmann::json& object, const char* key);

}  // namespace flamefleet::render
