// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>

namespace flamefleet {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // zlib: 15 for the window, +16 for gzip framing only

// inflateEnd on every path.
class InflateStream {
 public:
  InflateStream() { ok_ = inflateInit2(&stream_, kGzipWindowBits) == Z_OK; }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;
  ~InflateStream() {
    if (ok_) inflateEnd(&stream_);
  }
  bool ok() const { return ok_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
  bool ok_ = false;
};

}  // namespace

bool IsGzip(std::string_view data) {
  return data.size() >= 2 && data[0] == '\x1f' && data[1] == '\x8b';
}

Result<std::string> GunzipBounded(std::string_view data, size_t max_bytes) {
  if (data.size() > UINT32_MAX) return ResourceExhaustedError("gunzip: input over 4 GiB");
  InflateStream inflater;
  if (!inflater.ok()) return ResourceExhaustedError("gunzip: no memory");
  z_stream* z = inflater.get();
  z->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z->avail_in = static_cast<uInt>(data.size());

  std::string out;
  for (;;) {
    const size_t used = out.size();
    const size_t want = std::max<size_t>(used, data.size() * 2 + 1024);
    out.resize(std::min(used + want, max_bytes + 1));
    z->next_out = reinterpret_cast<Bytef*>(out.data() + used);
    z->avail_out = static_cast<uInt>(std::min<size_t>(out.size() - used, UINT32_MAX));
    const size_t room = z->avail_out;
    const int code = inflate(z, Z_NO_FLUSH);
    out.resize(used + room - z->avail_out);
    if (out.size() > max_bytes) {
      return ResourceExhaustedError("gunzip: more than " + std::to_string(max_bytes) +
                                    " bytes after decompression");
    }
    if (code == Z_STREAM_END) {
      if (z->avail_in == 0) return out;
      if (inflateReset(z) != Z_OK) return InternalError("gunzip: reset");
      continue;
    }
    if (code != Z_OK && code != Z_BUF_ERROR) {
      return InvalidArgumentError(std::string("gunzip: ") +
                                  (z->msg != nullptr ? z->msg : "damaged stream"));
    }
    if (z->avail_in == 0 && z->avail_out != 0) return InvalidArgumentError("gunzip: truncated");
  }
}

Result<std::string> Gzip(std::string_view data) {
  if (data.size() > UINT32_MAX) return ResourceExhaustedError("gzip: input over 4 GiB");
  constexpr int kDefaultMemLevel = 8;
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, kDefaultMemLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return ResourceExhaustedError("gzip: no memory");
  }
  std::string out(deflateBound(&z, data.size()), '\0');  // room for all: one call is enough
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  if (code != Z_STREAM_END) return InternalError("gzip: deflate " + std::to_string(code));
  return out;
}

}  // namespace flamefleet
