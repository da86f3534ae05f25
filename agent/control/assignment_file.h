// SPDX-License-Identifier: Apache-2.0
// AssignmentFile: the last assignment of a node on disk, so that an agent that starts while no
// operator answers goes on where the one before it was. The file may hold credentials of backends:
// only its owner may read it, and it goes when there is nothing to do.
//
// Thread: one at a time. Bounds: kMaxBytes.
// Errors: of Load: kNotFound there is none; kDataLoss it is not a whole assignment.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "proto/fleet/control.pb.h"

namespace flamefleet::agent {

class AssignmentFile {
 public:
  static constexpr size_t kMaxBytes = 64 << 20;

  // In `directory`, which exists; `node` is part of the name: agents of several nodes may share it.
  AssignmentFile(const std::string& directory, const std::string& node);

  Status Save(const fleet::v1alpha1::Snapshot& snapshot) const;
  Result<fleet::v1alpha1::Snapshot> Load() const;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace flamefleet::agent
