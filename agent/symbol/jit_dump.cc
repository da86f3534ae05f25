// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/jit_dump.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "agent/parse/wire.h"
#include "agent/symbol/elf_file.h"

namespace flamefleet::agent {
namespace {

constexpr uint32_t kMagic = 0x4A695444;  // in the byte order of who wrote it
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxFileHeaderBytes = 4096;

struct FileHeader {
  uint32_t magic = 0;
  uint32_t version = 0;
  uint32_t size = 0;
  uint32_t machine = 0;
  uint32_t pad = 0;
  uint32_t pid = 0;
  uint64_t timestamp = 0;
  uint64_t flags = 0;
};

enum RecordId : uint32_t { kCodeLoad = 0, kCodeMove = 1 };

struct RecordHeader {
  uint32_t id = 0;
  uint32_t size = 0;  // of all of it
  uint64_t timestamp = 0;
};

// After its header; behind it come the name, ended by 0, and the code.
struct CodeLoad {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t vma = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t index = 0;
};

struct CodeMove {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t vma = 0;
  uint64_t old_address = 0;
  uint64_t new_address = 0;
  uint64_t size = 0;
  uint64_t index = 0;
};

// What is read of a record: enough for the longest name.
using RecordBytes = std::array<char, sizeof(RecordHeader) + sizeof(CodeLoad) + kMaxMadeNameBytes>;

// What the child answers of each: a function, or one that has moved.
struct Change {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t moved_from = 0;  // 0: it has the name that follows
  uint64_t name_size = 0;   // names follow each other
};

// What is to be read: from an offset on, of a file that is so long.
struct Part {
  uint64_t offset = 0;
  uint64_t file_size = 0;
};

struct AnswerHead {
  uint64_t offset = 0;   // of the first record that was not read
  uint64_t records = 0;  // that were read, of any kind
};

// As many bytes as there are, up to the size of `bytes`.
std::string_view ReadAt(int file, uint64_t offset, std::span<char> bytes) {
  const ssize_t got = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  return {bytes.data(), got < 0 ? 0 : static_cast<size_t>(got)};
}

template <typename T>
std::optional<T> Take(std::string_view* bytes) {
  if (bytes->size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes->data(), sizeof(T));
  bytes->remove_prefix(sizeof(T));
  return value;
}

bool IsRange(uint64_t start, uint64_t size) {
  return size != 0 && size <= UINT64_MAX - start;
}

Result<uint64_t> SizeOfFileHeader(int file) {
  std::array<char, sizeof(FileHeader)> buffer{};
  std::string_view bytes = ReadAt(file, 0, buffer);
  const std::optional<FileHeader> header = Take<FileHeader>(&bytes);
  if (!header || header->magic != kMagic || header->version != kVersion ||
      header->machine != kElfMachine || header->size < sizeof(FileHeader) ||
      header->size > kMaxFileHeaderBytes)
    return InvalidArgumentError("read jitdump: not one of version 1 for this machine");
  return header->size;
}

// Without its header.
void ReadRecord(uint32_t id, std::string_view bytes, std::vector<Change>* changes,
                std::string* names) {
  if (id == kCodeLoad) {
    const std::optional<CodeLoad> load = Take<CodeLoad>(&bytes);
    if (!load || !IsRange(load->address, load->size)) return;
    const std::string_view name = bytes.substr(0, bytes.find('\0')).substr(0, kMaxMadeNameBytes);
    if (name.empty()) return;
    changes->push_back(
        {.start = load->address, .end = load->address + load->size, .name_size = name.size()});
    names->append(name);
  } else if (id == kCodeMove) {
    const std::optional<CodeMove> move = Take<CodeMove>(&bytes);
    if (!move || !IsRange(move->new_address, move->size) || move->old_address == 0) return;
    changes->push_back({.start = move->new_address,
                        .end = move->new_address + move->size,
                        .moved_from = move->old_address});
  }
}

}  // namespace

Result<std::string> AnswerJitDump(std::span<const int> files, std::string_view arguments) {
  ByteReader reader(arguments);
  const Part part = reader.Fixed<Part>();
  if (files.size() != 1 || !reader.Finished())
    return InvalidArgumentError("read jitdump: want one file and a part of it");
  AnswerHead head{.offset = part.offset};
  if (head.offset == 0) {
    FF_ASSIGN_OR_RETURN(head.offset, SizeOfFileHeader(files[0]));
  }
  std::vector<Change> changes;
  std::string names;
  RecordBytes buffer{};
  while (head.records < kMaxJitRecordsPerRequest) {
    std::string_view bytes = ReadAt(files[0], head.offset, buffer);
    const std::optional<RecordHeader> record = Take<RecordHeader>(&bytes);
    if (!record) break;
    // Written in the order of its bytes: one without a size is not there yet.
    if (record->size == 0 && record->id == 0) break;
    if (record->size < sizeof(RecordHeader))
      return InvalidArgumentError("read jitdump: a record shorter than its header");
    // Just being written.
    if (record->size > part.file_size - std::min(head.offset, part.file_size)) break;
    ReadRecord(record->id, bytes.substr(0, record->size - sizeof(RecordHeader)), &changes, &names);
    head.offset += record->size;
    ++head.records;
  }
  ByteWriter writer;
  writer.Fixed(head);
  writer.Array(std::span<const Change>(changes));
  writer.Text(names);
  return writer.Take();
}

Status JitDump::Update(const MappedFile& file, ParserProcess* parser) {
  // Not file.size: it has grown since it was opened.
  struct stat info {};
  if (::fstat(file.fd.get(), &info) != 0) return ErrnoError(errno, "look at jitdump");
  if (file.device != device_ || file.inode != inode_ ||
      static_cast<uint64_t>(info.st_size) < offset_) {
    *this = JitDump();
    device_ = file.device;
    inode_ = file.inode;
  }
  if (is_refused_) return InvalidArgumentError("read jitdump: it was refused before");
  const int files[] = {file.fd.get()};
  for (uint64_t records = 0; records < kMaxJitRecordsPerUpdate; records += last_records_) {
    ByteWriter arguments;
    arguments.Fixed(Part{.offset = offset_, .file_size = static_cast<uint64_t>(info.st_size)});
    const Result<std::string> answer = parser->Run(ParseKind::kJitDump, files, arguments.Take());
    if (!answer.ok()) {
      is_refused_ = answer.status().code() != StatusCode::kUnavailable;
      return answer.status();
    }
    FF_RETURN_IF_ERROR(Add(*answer));
    if (last_records_ < kMaxJitRecordsPerRequest) break;
  }
  return OkStatus();
}

Status JitDump::Add(std::string_view answer) {
  const Status wrong = InvalidArgumentError("read jitdump: not what the parser writes");
  ByteReader reader(answer);
  const AnswerHead head = reader.Fixed<AnswerHead>();
  const std::vector<Change> changes = reader.Array<Change>();
  std::string_view names = reader.Text();
  if (!reader.Finished() || head.offset < offset_ || head.records > kMaxJitRecordsPerRequest)
    return wrong;
  for (const Change& change : changes) {
    if (change.start >= change.end || change.name_size > std::min(names.size(), kMaxMadeNameBytes))
      return wrong;
    if (change.moved_from != 0) {
      const std::string name(functions_.Find(change.moved_from));
      if (!name.empty()) functions_.Insert(change.start, change.end, name);
    } else {
      functions_.Insert(change.start, change.end, names.substr(0, change.name_size));
      names.remove_prefix(change.name_size);
    }
  }
  offset_ = head.offset;
  last_records_ = head.records;
  return OkStatus();
}

}  // namespace flamefleet::agent
