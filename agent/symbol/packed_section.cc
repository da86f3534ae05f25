// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/packed_section.h"

#include <elf.h>
#include <zlib.h>

#include <algorithm>
#include <span>

namespace flamefleet::agent {
namespace {

constexpr size_t kPackedChunkBytes = 256 << 10;

}  // namespace

Result<std::string> ReadPackedSection(const ByteSource& source, const ElfFile::Section& section,
                                      uint64_t limit) {
  Elf64_Chdr header;
  if (section.size < sizeof(header))
    return InvalidArgumentError("unpack section: shorter than its header");
  FF_RETURN_IF_ERROR(
      source.ReadExact(std::as_writable_bytes(std::span(&header, 1)), section.offset));
  if (header.ch_type != ELFCOMPRESS_ZLIB)
    return InvalidArgumentError("unpack section: compressed, but not with zlib");
  if (header.ch_size > limit) {
    return ResourceExhaustedError("unpack section: over " + std::to_string(limit) +
                                  " bytes when unpacked");
  }
  std::string content(header.ch_size, '\0');
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return ResourceExhaustedError("unpack section: no memory");
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(content.size());
  std::string packed;
  int result = Z_OK;
  Status read;
  for (uint64_t at = sizeof(header); at < section.size && result == Z_OK && read.ok();) {
    packed.resize(std::min<uint64_t>(kPackedChunkBytes, section.size - at));
    read = source.ReadInto(packed, section.offset + at);
    at += packed.size();
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    if (read.ok()) result = ::inflate(&stream, Z_NO_FLUSH);
  }
  const bool is_whole = result == Z_STREAM_END && stream.avail_out == 0;
  ::inflateEnd(&stream);
  FF_RETURN_IF_ERROR(read);
  if (!is_whole) return InvalidArgumentError("unpack section: damaged");
  return content;
}

}  // namespace flamefleet::agent
