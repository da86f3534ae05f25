// SPDX-License-Identifier: Apache-2.0
#include <lzma.h>

#include <algorithm>
#include <memory>

#include "agent/symbol/symbol_reader.h"

namespace flamefleet::agent {

Result<std::string> UnpackXz(std::string_view packed, size_t max_bytes) {
  constexpr uint64_t kMaxMemory = 48 << 20;  // xz -9 asks for 65 MiB, what distributions use for 9
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMaxMemory, 0) != LZMA_OK)
    return ResourceExhaustedError("unpack xz: no memory");
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> owner(&stream, &lzma_end);
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::string plain;
  for (;;) {
    constexpr size_t kStep = 256 << 10;
    const size_t used = plain.size();
    plain.resize(std::min(used + kStep, max_bytes + 1));
    stream.next_out = reinterpret_cast<uint8_t*>(plain.data()) + used;
    stream.avail_out = plain.size() - used;
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    plain.resize(plain.size() - stream.avail_out);
    if (plain.size() > max_bytes)
      return ResourceExhaustedError("unpack xz: more than " + std::to_string(max_bytes) + " bytes");
    if (result == LZMA_STREAM_END) return plain;
    if (result == LZMA_MEMLIMIT_ERROR) return ResourceExhaustedError("unpack xz: too much memory");
    if (result != LZMA_OK) return DataLossError("unpack xz: damaged");
  }
}

}  // namespace flamefleet::agent
