// SPDX-License-Identifier: Apache-2.0
#include "base/standard_output.h"

#include <cerrno>
#include <cstdio>

namespace flamefleet {

Status FlushStandardOutput() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return OkStatus();
  const std::string operation = "write standard output";
  // The cause is known of the last piece alone.
  return errno != 0 ? ErrnoError(errno, operation)
                    : DataLossError(operation + ": not all of it was taken: is a disk full?");
}

}  // namespace flamefleet
