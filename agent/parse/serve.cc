// SPDX-License-Identifier: Apache-2.0
#include "agent/parse/serve.h"

#include <malloc.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <vector>

#include "agent/parse/sandbox.h"
#include "agent/parse/socket.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxMessageBytes = 1024;
// A heap that grew beyond this for a request goes back to the system after it.
constexpr size_t kKeptHeapBytes = 4 << 20;

// Kills this process (SIGPROF) once it has used that much more CPU time; 0 calls it off.
void LimitCpu(int seconds) {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

Result<std::string> Answer(const ParseHandlers& handlers, uint32_t kind,
                           std::span<const UniqueFd> files, std::string_view arguments) {
  const auto handler = handlers.find(static_cast<ParseKind>(kind));
  if (handler == handlers.end()) return UnimplementedError("parse: no such request");
  std::vector<int> fds;
  for (const UniqueFd& file : files)
    fds.push_back(file.get());
  try {
    Result<std::string> answer = handler->second(fds, arguments);
    if (answer.ok() && answer->size() > kMaxParseAnswerBytes)
      return ResourceExhaustedError("parse: the answer is over 24 MiB");
    return answer;
  } catch (const std::bad_alloc&) {
    return ResourceExhaustedError("parse: more memory than the parser may use");
  }
}

Status SendAnswer(int socket, const Result<std::string>& answer) {
  const std::string content =
      answer.ok() ? std::string() : ErrorMessage(answer.status()).substr(0, kMaxMessageBytes);
  const std::string& bytes = answer.ok() ? *answer : content;
  const ParseAnswerHeader header{.code = static_cast<uint32_t>(answer.status().code()),
                                 .size = static_cast<uint32_t>(bytes.size())};
  FF_RETURN_IF_ERROR(SendAll(socket, std::as_bytes(std::span(&header, 1)), {}, kNoDeadline));
  return SendAll(socket, std::as_bytes(std::span(bytes)), {}, kNoDeadline);
}

Status ServeOne(int socket, const ParseHandlers& handlers) {
  ParseRequestHeader header;
  std::vector<UniqueFd> files;
  FF_RETURN_IF_ERROR(
      ReceiveAll(socket, std::as_writable_bytes(std::span(&header, 1)), &files, kNoDeadline));
  FF_CHECK(header.size <= kMaxParseArgumentBytes);
  std::string arguments(header.size, '\0');
  FF_RETURN_IF_ERROR(
      ReceiveAll(socket, std::as_writable_bytes(std::span(arguments)), &files, kNoDeadline));
  LimitCpu(kMaxParseCpuSeconds);
  const Result<std::string> answer = Answer(handlers, header.kind, files, arguments);
  LimitCpu(0);
  return SendAnswer(socket, answer);
}

}  // namespace

int ServeParser(int socket, const ParseHandlers& handlers) {
  const Status sandboxed = EnterSandbox();
  if (!sandboxed.ok()) {
    std::fprintf(stderr, "flamefleet-parse: %s\n", ErrorMessage(sandboxed).c_str());
    return 1;
  }
  constexpr std::byte kReady{1};
  if (!SendAll(socket, std::span(&kReady, 1), {}, kNoDeadline).ok()) return 1;
  while (ServeOne(socket, handlers).ok()) {
    ::malloc_trim(kKeptHeapBytes);
  }
  return 0;  // the parent has hung up
}

}  // namespace flamefleet::agent
