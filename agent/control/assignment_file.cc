// SPDX-License-Identifier: Apache-2.0
#include "agent/control/assignment_file.h"

#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace flamefleet::agent {
namespace {

constexpr unsigned kOwnerOnly = 0600;

}  // namespace

AssignmentFile::AssignmentFile(const std::string& directory, const std::string& node)
    : path_(directory + "/assignment-" + node + ".pb") {}

Status AssignmentFile::Save(const fleet::v1alpha1::Snapshot& snapshot) const {
  if (snapshot.pods().empty()) {
    if (::unlink(path_.c_str()) == 0 || errno == ENOENT) return OkStatus();
    return ErrnoError(errno, "remove " + path_);
  }
  return WriteFileAtomically(path_, snapshot.SerializeAsString(), kOwnerOnly);
}

Result<fleet::v1alpha1::Snapshot> AssignmentFile::Load() const {
  FF_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path_, kMaxBytes));
  fleet::v1alpha1::Snapshot snapshot;
  // Versions begin at 1: what a crash of the node cut off has none.
  if (!snapshot.ParseFromString(bytes) || snapshot.version() == 0) {
    return DataLossError("read " + path_ + ": not a whole assignment");
  }
  return snapshot;
}

}  // namespace flamefleet::agent
