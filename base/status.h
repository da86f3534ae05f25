// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how every function of this project says that it did not work.
//
// The one facade over absl::Status: nothing outside base/ names absl. Codes are the canonical ones,
// so they map to gRPC and HTTP and decide what is retried:
//   kInvalidArgument, kNotFound, kFailedPrecondition, kPermissionDenied, kAlreadyExists: a retry
//   does not help; kUnavailable, kDeadlineExceeded, kAborted, kResourceExhausted: try again later.
// A message reads "operation object: cause"; each layer adds context at most once (Annotate).
//
// Thread: any. Errors: a dropped Status is a compile error ([[nodiscard]]).
// Trap: `return OkStatus();` where a Result<T> is expected compiles and aborts at run time; return
// the value.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <utility>

namespace flamefleet {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using Result = absl::StatusOr<T>;

inline Status OkStatus() {
  return absl::OkStatus();
}
Status InvalidArgumentError(const std::string& message);
Status NotFoundError(const std::string& message);
Status AlreadyExistsError(const std::string& message);
Status PermissionDeniedError(const std::string& message);
Status FailedPreconditionError(const std::string& message);
Status ResourceExhaustedError(const std::string& message);
Status UnavailableError(const std::string& message);
Status DeadlineExceededError(const std::string& message);
Status CancelledError(const std::string& message);
Status AbortedError(const std::string& message);
Status DataLossError(const std::string& message);
Status UnimplementedError(const std::string& message);
Status InternalError(const std::string& message);

// "operation: strerror(error)" with the code that fits: ENOENT is kNotFound, EACCES and EPERM
// kPermissionDenied, ENOSPC, EMFILE and ENOMEM kResourceExhausted, ...
Status ErrnoError(int error, const std::string& operation);

// The same status with "context: " before its message.
Status Annotate(const Status& status, const std::string& context);

// The message as a std::string (absl::string_view is not std::string_view in Debian's build).
std::string ErrorMessage(const Status& status);
// The code's name as in gRPC: "UNAVAILABLE".
std::string ErrorCodeName(const Status& status);

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace internal

}  // namespace flamefleet

// Aborts on a state that cannot be: a bug of ours, never bad input.
#define FF_CHECK(condition) \
  ((condition) ? (void)0 : ::flamefleet::internal::CheckFailed(__FILE__, __LINE__, #condition))

#define FF_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                    \
    if (::flamefleet::Status ff_status = (expression); !ff_status.ok()) return ff_status; \
  } while (false)

#define FF_CONCAT_INNER(a, b) a##b
#define FF_CONCAT(a, b) FF_CONCAT_INNER(a, b)
#define FF_ASSIGN_OR_RETURN(declaration, expression) \
  FF_ASSIGN_OR_RETURN_IMPL(FF_CONCAT(ff_result_, __LINE__), declaration, expression)
#define FF_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) return result.status();                       \
  declaration = *std::move(result)
