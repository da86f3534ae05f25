// SPDX-License-Identifier: Apache-2.0
// OwnWrites: a key must not be reconciled on a cache that is older than what was written for it: it
// would judge by what it has changed already. So after a write the key waits until the cache has
// seen that version of that kind, by the object itself, by a later one or by a bookmark. Other keys
// do not wait.
//
// A server that was restored from a backup counts its versions anew from an older one; nothing
// waits for a version from before that.
//
// Thread: one (the worker). Bounds: per key one version of each kind written, until it was seen.
// Source: KEP-5647; versions compare as numbers since KEP-5504.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "operator/kube/resource.h"

namespace flamefleet {

// True when resourceVersion `version` is older than `than`, both of the same resource: decimal
// numbers without leading zeros; none at all is the oldest.
bool IsOlderVersion(const std::string& version, const std::string& than);

class OwnWrites {
 public:
  // The newest version of a kind that the cache has seen; empty: none, or the kind is not kept, and
  // then nothing waits for it.
  using SeenVersion = std::function<std::string(const Resource& resource)>;

  explicit OwnWrites(SeenVersion seen) : seen_(std::move(seen)) {}

  // What is written from now on is written for `key`.
  void Begin(const std::string& key) { current_ = key; }
  void Wrote(const Resource& resource, const std::string& version);
  // True when the cache has seen all that was written for `key`.
  bool Seen(const std::string& key);

 private:
  struct Version {
    Resource resource;
    std::string version;
    std::string seen;  // what the cache had seen then
  };

  const SeenVersion seen_;
  std::string current_;
  std::map<std::string, std::map<std::string_view, Version>> waiting_;  // by key, then by plural
};

}  // namespace flamefleet
