// SPDX-License-Identifier: Apache-2.0
// What the agent asks its parsing child, and the bounds of question and answer.
//
// On the socket, each way: a header, then `size` bytes. A request carries its files as descriptors;
// arguments and answers are written with ByteWriter by the module that defines the request.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flamefleet::agent {

enum class ParseKind : uint32_t {
  kSymbols = 1,      // agent/symbol/symbol_request.h
  kPerfMap = 2,      // agent/symbol/perf_map.h
  kUnwindInfo = 3,   // agent/stack/unwind_request.h
  kUnwindTable = 4,  // likewise
  kLines = 5,        // agent/symbol/line_request.h
  kJitDump = 6,      // agent/symbol/jit_dump.h
};

constexpr size_t kMaxParseFiles = 3;
constexpr size_t kMaxParseArgumentBytes = 64 << 10;
constexpr size_t kMaxParseAnswerBytes = 24 << 20;  // symbols of a million functions take 8 MiB

// What the child may use for one request or in all; over it it dies or answers with an error.
constexpr int kMaxParseCpuSeconds = 2;                  // per request; cc1plus takes 0.1
constexpr uint64_t kMaxParserCpuSeconds = 600;          // of one child; then comes another
constexpr uint64_t kMaxParserAddressBytes = 160 << 20;  // 30 MiB of it are libraries

struct ParseRequestHeader {
  uint32_t kind = 0;
  uint32_t size = 0;  // of the arguments
};

struct ParseAnswerHeader {
  uint32_t code = 0;  // StatusCode; of an error the content is the message
  uint32_t size = 0;
};

}  // namespace flamefleet::agent
