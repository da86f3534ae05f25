// SPDX-License-Identifier: Apache-2.0
// Applier: the only writer of objects. It brings an object to its full intent by server-side apply,
// and sends nothing when the intent is the one of the last write and is still in force.
//
// The worker never asks on a cache that has not seen our own last write (OwnWrites).
//
// Thread: one (the worker). Bounds: one remembered write per object; the write's own bounds are
// those of RestClient.
// Errors: those of RestClient::Apply; a failed write is forgotten, so the next call writes again.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>

#include "base/metrics.h"
#include "base/status.h"
#include "operator/kube/owned_fields.h"
#include "operator/kube/rest_client.h"
#include "operator/runtime/own_writes.h"

namespace flamefleet {

class Applier {
 public:
  // References outlive this object.
  Applier(RestClient& client, OwnWrites& own_writes, Metrics& metrics);

  // `object` is complete: apiVersion, kind, metadata.name and all fields that we own. `live` is
  // what the cache knows of it, nullptr when it knows none.
  Status Apply(const Resource& resource, const nlohmann::json& object, const OwnedFields* live,
               const std::stop_token& stop);

  // Removes the object, which may be gone already.
  Status Delete(const Resource& resource, const std::string& ns, const std::string& name,
                const std::stop_token& stop);

  // The object's owner is gone, and so is the object or it will be.
  void Forget(const Resource& resource, const std::string& ns, const std::string& name);

 private:
  struct Written {
    size_t intent = 0;  // hash of the applied text
    size_t owned = 0;   // OwnedFields::spec as the server answered
  };

  static bool InForce(const Written& written, size_t intent, const OwnedFields* live);

  RestClient& client_;
  OwnWrites& own_writes_;
  std::map<std::string, Written> written_;  // by path
  CounterMetric applied_, unchanged_, deleted_, failed_;
};

}  // namespace flamefleet
