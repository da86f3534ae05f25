// SPDX-License-Identifier: Apache-2.0
// ProfileFiles: the profiles of a run on one host, one sum per service, written as NAME.pb.gz.
//
// Thread: Add from one thread; Write after the last Add.
// Bounds: kMaxServices; what comes after is counted and not kept. kMaxServiceBytes per service.
// Errors: Write: the folder or a file cannot be written; the message names it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/types.h"
#include "base/pprof/merge.h"
#include "base/status.h"

namespace flamefleet::agent {

class ProfileFiles {
 public:
  static constexpr size_t kMaxServices = 1000;
  static constexpr size_t kMaxServiceBytes = 64 << 20;

  // An error says which profile was not kept and why; the others are.
  Status Add(const FinishedProfile& profile);

  struct File {
    std::string path;
    std::string service;
    uint64_t samples = 0;  // distinct stacks
    int64_t total = 0;     // of the last sample type
    std::string unit;
  };
  // Makes the folder if it is missing; largest total first.
  Result<std::vector<File>> Write(const std::string& directory);

 private:
  std::map<std::string, std::unique_ptr<pprof::Merger>> services_;
};

// A file name for the service, without separators or a leading dot, not in `used`, to which it is
// added.
std::string FileNameOf(const std::string& service, std::set<std::string>* used);

}  // namespace flamefleet::agent
