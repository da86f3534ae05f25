// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace flamefleet {
namespace {

StatusCode CodeOfErrno(int error) {
  switch (error) {
    case 0:
      return StatusCode::kOk;
    case ENOENT:
    case ESRCH:
    case ENXIO:
    case ENODEV:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return StatusCode::kPermissionDenied;
    case EEXIST:
    case EADDRINUSE:
      return StatusCode::kAlreadyExists;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
      return StatusCode::kInvalidArgument;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case E2BIG:
    case EFBIG:
      return StatusCode::kResourceExhausted;
    case EAGAIN:
    case EBUSY:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
      return StatusCode::kUnavailable;
    case ETIMEDOUT:
      return StatusCode::kDeadlineExceeded;
    case ECANCELED:
      return StatusCode::kCancelled;
    case ENOSYS:
    case EOPNOTSUPP:
      return StatusCode::kUnimplemented;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

Status InvalidArgumentError(const std::string& message) {
  return absl::InvalidArgumentError(message);
}
Status NotFoundError(const std::string& message) {
  return absl::NotFoundError(message);
}
Status AlreadyExistsError(const std::string& message) {
  return absl::AlreadyExistsError(message);
}
Status PermissionDeniedError(const std::string& message) {
  return absl::PermissionDeniedError(message);
}
Status FailedPreconditionError(const std::string& message) {
  return absl::FailedPreconditionError(message);
}
Status ResourceExhaustedError(const std::string& message) {
  return absl::ResourceExhaustedError(message);
}
Status UnavailableError(const std::string& message) {
  return absl::UnavailableError(message);
}
Status DeadlineExceededError(const std::string& message) {
  return absl::DeadlineExceededError(message);
}
Status CancelledError(const std::string& message) {
  return absl::CancelledError(message);
}
Status AbortedError(const std::string& message) {
  return absl::AbortedError(message);
}
Status DataLossError(const std::string& message) {
  return absl::DataLossError(message);
}
Status UnimplementedError(const std::string& message) {
  return absl::UnimplementedError(message);
}
Status InternalError(const std::string& message) {
  return absl::InternalError(message);
}

Status ErrnoError(int error, const std::string& operation) {
  return {CodeOfErrno(error), operation + ": " + std::system_category().message(error)};
}

Status Annotate(const Status& status, const std::string& context) {
  if (status.ok()) return status;
  return {status.code(), context + ": " + ErrorMessage(status)};
}

std::string ErrorMessage(const Status& status) {
  return std::string(status.message());
}

std::string ErrorCodeName(const Status& status) {
  return absl::StatusCodeToString(status.code());
}

namespace internal {
void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}
}  // namespace internal

}  // namespace flamefleet
