// SPDX-License-Identifier: Apache-2.0
#include "agent/compress/gzip_compressor.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstdint>

#include "base/status.h"

namespace flamefleet::agent {

GzipCompressor::GzipCompressor()
    : level_buffer_(ISAL_DEF_LVL2_DEFAULT), stream_(std::make_unique<isal_zstream>()) {
  isal_deflate_init(stream_.get());
  stream_->level = 2;
  stream_->level_buf = level_buffer_.data();
  stream_->level_buf_size = static_cast<uint32_t>(level_buffer_.size());
}

GzipCompressor::~GzipCompressor() = default;

void GzipCompressor::Compress(std::string_view input, std::string* out) {
  FF_CHECK(input.size() <= UINT32_MAX);
  isal_deflate_reset(stream_.get());
  stream_->gzip_flag = IGZIP_GZIP;
  stream_->end_of_stream = 1;
  stream_->flush = NO_FLUSH;
  // igzip only reads its input.
  stream_->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(input.data()));
  stream_->avail_in = static_cast<uint32_t>(input.size());
  // Profiles shrink to about 40 %; what does not fit grows the output below.
  constexpr size_t kFraming = 64;
  out->resize(std::max(out->capacity(), input.size() / 2 + kFraming));
  size_t used = 0;
  for (;;) {
    stream_->next_out = reinterpret_cast<uint8_t*>(out->data()) + used;
    stream_->avail_out = static_cast<uint32_t>(std::min<size_t>(out->size() - used, UINT32_MAX));
    const size_t offered = stream_->avail_out;
    FF_CHECK(isal_deflate(stream_.get()) == COMP_OK);
    used += offered - stream_->avail_out;
    if (stream_->internal_state.state == ZSTATE_END) break;
    if (used == out->size()) out->resize(out->size() * 2);
  }
  out->resize(used);
}

}  // namespace flamefleet::agent
