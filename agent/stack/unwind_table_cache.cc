// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwind_table_cache.h"

#include <openssl/evp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "agent/stack/unwind_request.h"
#include "base/clock.h"
#include "base/fd.h"

namespace flamefleet::agent {
namespace {

std::array<uint8_t, 32> DigestOf(const std::array<uint64_t, 3>& head,
                                 std::span<const std::byte> content) {
  std::array<uint8_t, 32> digest{};
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  FF_CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
           EVP_DigestUpdate(context.get(), head.data(), sizeof(head)) == 1 &&
           EVP_DigestUpdate(context.get(), content.data(), content.size()) == 1 &&
           EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  return digest;
}

// Of `sections`, which is what `elf` says of them: what a table depends on.
std::array<uint8_t, 32> DigestOfSections(std::span<const std::byte> sections, const ElfFile& elf) {
  const auto eh_frame = elf.eh_frame.value_or(ElfFile::Section{});
  return DigestOf({0, eh_frame.address, eh_frame.size}, sections);
}

std::array<uint8_t, 32> DigestOfTable(const UnwindTable& table) {
  return DigestOf({1, 0, 0}, std::as_bytes(table.words()));
}

Result<UniqueFd> InMemory(std::span<const std::byte> bytes) {
  UniqueFd fd(::memfd_create("eh_frame", MFD_CLOEXEC));
  if (!fd.ok()) return ErrnoError(errno, "copy unwind rules");
  const std::span text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  FF_RETURN_IF_ERROR(WriteAll(fd.get(), text, "copy of unwind rules"));
  return fd;
}

}  // namespace

UnwindTableCache::UnwindTableCache(UnwindMaps maps, size_t max_bytes,
                                   std::shared_ptr<ParserProcess> parser)
    : maps_(maps), max_bytes_(max_bytes), parser_(std::move(parser)), vdso_(OpenVdso()) {}

ff_mapping UnwindTableCache::Resolve(const ImageMapping& mapping, int64_t now_ns,
                                     int64_t* retry_ns) {
  ff_mapping result{.start = mapping.start, .end = mapping.end};
  const MappedFile* const mapped = mapping.path == "[vdso]" ? vdso_.get() : mapping.file.get();
  if (mapped == nullptr) return result;
  const FileId id = mapped->id();
  if (!files_.contains(id) && files_.size() >= kMaxUnwindFiles) DropOldestFile();
  const auto [found, is_new] = files_.try_emplace(id);
  File& file = found->second;
  file.touched_ns = now_ns;
  const bool was_evicted = file.table != 0 && !tables_.contains(file.table);
  const bool is_retry = file.retry_ns != 0 && now_ns >= file.retry_ns;
  if (is_new || was_evicted || is_retry) {
    if (MayBuild(now_ns))
      Build(mapped->fd.get(), now_ns, &file);
    else
      file.retry_ns = failing_since_ns_ + kIdleTableNanos;
  }
  if (retry_ns != nullptr && file.retry_ns != 0 && (*retry_ns == 0 || file.retry_ns < *retry_ns))
    *retry_ns = file.retry_ns;
  const std::optional<uint64_t> bias =
      file.elf.BiasOfMapping(mapping.start, mapping.end - mapping.start, mapping.offset);
  if (!bias || !tables_.contains(file.table)) return result;
  result.bias = *bias;
  result.table = file.table;
  Touch(file.table, now_ns);
  return result;
}

bool UnwindTableCache::MayBuild(int64_t now_ns) {
  if (now_ns - failing_since_ns_ >= kIdleTableNanos) {
    failing_since_ns_ = now_ns;
    failing_ns_ = 0;
  }
  return failing_ns_ < kMaxFailingTableNanos;
}

void UnwindTableCache::Build(int fd, int64_t now_ns, File* file) {
  const int64_t start_ns = SystemClock().MonotonicNanos();
  Result<ElfFile> elf = RequestUnwindInfo(parser_.get(), fd);
  const Result<uint32_t> table =
      elf.ok() ? TableOf(fd, *elf, now_ns) : Result<uint32_t>(elf.status());
  file->table = table.value_or(0);
  file->retry_ns = 0;
  if (elf.ok()) file->elf = *std::move(elf);
  if (table.ok()) return;
  CountFailure(table.status());
  if (table.status().code() == StatusCode::kUnavailable) {
    file->retry_ns = now_ns + kIdleTableNanos;
    return;
  }
  failing_ns_ += SystemClock().MonotonicNanos() - start_ns;
  if (MayPass(table.status()) && ++file->strikes < kMaxUnwindStrikes)
    file->retry_ns = now_ns + (kIdleTableNanos << (2 * file->strikes));
}

void UnwindTableCache::DropOldestFile() {
  files_.erase(std::ranges::min_element(files_, {},
                                        [](const auto& item) { return item.second.touched_ns; }));
}

Result<uint32_t> UnwindTableCache::TableOf(int fd, const ElfFile& elf, int64_t now_ns) {
  if (elf.go_pclntab) return TableOfGo(fd, elf, now_ns);
  // Both sections, one after the other.
  std::vector<std::byte> sections;
  ElfFile where;
  const auto read = [&](const std::optional<ElfFile::Section>& section,
                        std::optional<ElfFile::Section>* copy) -> Status {
    if (!section) return OkStatus();
    if (section->size > kMaxUnwindSectionBytes)
      return ResourceExhaustedError("build unwind table: a section over 16 MiB");
    *copy = *section;
    (*copy)->offset = sections.size();
    sections.resize(sections.size() + section->size);
    return PreadExact(fd, std::span(sections).subspan((*copy)->offset), section->offset);
  };
  FF_RETURN_IF_ERROR(read(elf.eh_frame, &where.eh_frame));
  FF_RETURN_IF_ERROR(read(elf.debug_frame, &where.debug_frame));
  if (sections.empty()) return NotFoundError("build unwind table: no .eh_frame, no .debug_frame");
  const Digest digest = DigestOfSections(sections, where);
  if (const auto same = numbers_.find(digest); same != numbers_.end()) return same->second;
  // From the very bytes of the digest: the file may change under us.
  FF_ASSIGN_OR_RETURN(const UniqueFd copy, InMemory(sections));
  FF_ASSIGN_OR_RETURN(const UnwindTable table,
                      RequestUnwindTable(parser_.get(), copy.get(), where));
  return Add(table, digest, now_ns);
}

Result<uint32_t> UnwindTableCache::TableOfGo(int fd, const ElfFile& elf, int64_t now_ns) {
  FF_ASSIGN_OR_RETURN(const UnwindTable table, RequestUnwindTable(parser_.get(), fd, elf));
  const Digest digest = DigestOfTable(table);
  if (const auto same = numbers_.find(digest); same != numbers_.end()) return same->second;
  return Add(table, digest, now_ns);
}

Result<uint32_t> UnwindTableCache::Add(const UnwindTable& table, const Digest& digest,
                                       int64_t now_ns) {
  const size_t bytes = table.words().size_bytes();
  if (bytes > max_bytes_) return ResourceExhaustedError("add unwind table: over the budget");
  if (!MakeRoom(bytes, now_ns)) return UnavailableError("add unwind table: no room for now");
  const uint32_t number = ++last_number_;
  FF_RETURN_IF_ERROR(maps_.AddTable(number, table.words()));
  tables_[number] = {.digest = digest, .bytes = bytes, .touched_ns = now_ns};
  numbers_[digest] = number;
  bytes_ += bytes;
  ++counts_.built;
  return number;
}

bool UnwindTableCache::MakeRoom(size_t bytes, int64_t now_ns) {
  while (bytes_ + bytes > max_bytes_ || tables_.size() >= FF_MAX_UNWIND_TABLES) {
    const auto oldest = std::ranges::min_element(
        tables_, {}, [](const auto& item) { return item.second.touched_ns; });
    if (oldest->second.touched_ns > now_ns - kIdleTableNanos) return false;
    Remove(oldest->first);
    ++counts_.evicted;
  }
  return true;
}

void UnwindTableCache::CountFailure(const Status& status) {
  if (status.code() == StatusCode::kNotFound)
    ++counts_.absent;
  else if (status.code() == StatusCode::kResourceExhausted)
    ++counts_.too_large;
  else if (status.code() == StatusCode::kUnavailable)
    ++counts_.no_room;
  else
    ++counts_.damaged;
}

void UnwindTableCache::Remove(uint32_t table) {
  const auto found = tables_.find(table);
  maps_.RemoveTable(table);
  numbers_.erase(found->second.digest);
  bytes_ -= found->second.bytes;
  tables_.erase(found);
}

bool UnwindTableCache::Touch(uint32_t table, int64_t now_ns) {
  const auto found = tables_.find(table);
  if (found == tables_.end()) return false;
  found->second.touched_ns = now_ns;
  return true;
}

void UnwindTableCache::Sweep(const std::unordered_set<uint32_t>& in_use, int64_t now_ns) {
  const int64_t limit = now_ns - kIdleTableNanos;
  std::vector<uint32_t> idle;
  for (const auto& [number, table] : tables_) {
    if (table.touched_ns < limit && !in_use.contains(number)) idle.push_back(number);
  }
  for (const uint32_t number : idle)
    Remove(number);
  // A file whose table is in use is kept for a while: others may map it.
  std::erase_if(files_, [this, limit, now_ns](const auto& item) {
    const File& file = item.second;
    return file.touched_ns < now_ns - kIdleFileNanos ||
           (file.touched_ns < limit && !tables_.contains(file.table));
  });
}

}  // namespace flamefleet::agent
