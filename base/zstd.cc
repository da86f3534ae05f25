// SPDX-License-Identifier: Apache-2.0
#include "base/zstd.h"

#include <zstd.h>

#include <memory>

namespace flamefleet {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

std::string ZstdCompress(std::string_view data, int level) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  FF_CHECK(context != nullptr);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(data.size()), '\0');
  const size_t size =
      ZSTD_compress2(context.get(), out.data(), out.size(), data.data(), data.size());
  FF_CHECK(ZSTD_isError(size) == 0);  // there is room for all
  out.resize(size);
  return out;
}

Result<std::string> ZstdDecompress(std::string_view frame, size_t max_bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return DataLossError("zstd: not a frame of ours");
  }
  if (size > max_bytes) {
    return DataLossError("zstd: a frame of " + std::to_string(size) + " bytes, at most " +
                         std::to_string(max_bytes) + " are expected");
  }
  std::string out(size, '\0');
  const size_t got = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0) return DataLossError(std::string("zstd: ") + ZSTD_getErrorName(got));
  if (got != size) return DataLossError("zstd: truncated");
  return out;
}

}  // namespace flamefleet
