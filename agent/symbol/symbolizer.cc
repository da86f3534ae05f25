// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbolizer.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/utf8.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxModulesBytes = 1 << 20;
constexpr uint64_t kWindowsBetweenModuleChecks = 6;  // a minute of windows of 10 s

// The first word of each line of /proc/modules; the others count users and change all the time.
std::string ModuleNames(std::string_view modules) {
  std::string names;
  while (!modules.empty()) {
    const size_t end = std::min(modules.find('\n'), modules.size());
    const std::string_view line = modules.substr(0, end);
    names.append(line.substr(0, line.find(' '))).push_back('\n');
    modules.remove_prefix(std::min(end + 1, modules.size()));
  }
  return names;
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

Symbolizer::Symbolizer(std::string proc_root, size_t max_bytes,
                       std::shared_ptr<ParserProcess> parser)
    : proc_root_(std::move(proc_root)),
      max_bytes_(max_bytes),
      parser_(std::move(parser)),
      vdso_(OpenVdso()) {}

std::shared_ptr<const SymbolTable> Symbolizer::Share(SymbolTable table, std::string_view encoded) {
  Digest digest{};
  FF_CHECK(EVP_Digest(encoded.data(), encoded.size(), digest.data(), nullptr, EVP_sha256(),
                      nullptr) == 1);
  std::weak_ptr<const SymbolTable>& known = tables_[digest];
  std::shared_ptr<const SymbolTable> shared = known.lock();
  if (!shared) {
    shared = std::make_shared<const SymbolTable>(std::move(table));
    known = shared;
  }
  return shared;
}

std::unique_ptr<SymbolFile> Symbolizer::Open(const std::shared_ptr<const MappedFile>& file) {
  if (failing_ns_ > kMaxFailingNanos) return nullptr;
  const int64_t start_ns = SystemClock().MonotonicNanos();
  const int fds[] = {file->fd.get()};
  std::string encoded;
  Result<ProgramSymbols> symbols = RequestSymbols(parser_.get(), fds, &encoded);
  if (!symbols.ok()) {
    if (symbols.status().code() == StatusCode::kUnavailable) return nullptr;
    failing_ns_ += SystemClock().MonotonicNanos() - start_ns;
    return std::make_unique<SymbolFile>(file);
  }
  std::shared_ptr<const SymbolTable> table = Share(std::move(symbols->table), encoded);
  return std::make_unique<SymbolFile>(std::vector{file}, *std::move(symbols), std::move(table));
}

SymbolFile* Symbolizer::FileOf(const ImageMapping& mapping) {
  const std::shared_ptr<const MappedFile>& file = mapping.path == "[vdso]" ? vdso_ : mapping.file;
  if (!file) return nullptr;
  Cached& cached = files_[{file->device, file->inode, file->size, file->modified_ns}];
  if (!cached.file) cached.file = Open(file);
  cached.last_window = window_;
  return cached.file.get();
}

const SymbolName& Symbolizer::Unnamed(std::string name) {
  ++unnamed_;
  last_.name = std::move(name);
  last_.system_name.clear();
  return last_;
}

const SymbolName& Symbolizer::UserName(const ImageMapping& mapping, uint64_t address) {
  uint64_t offset = address - mapping.start + mapping.offset;
  if (SymbolFile* const file = FileOf(mapping)) {
    const SymbolFile::Place place = file->Find(offset);
    if (place.name != nullptr) return *place.name;
    offset = place.function_offset;
  }
  if (mapping.path.empty()) return Unnamed("[anonymous]");
  if (mapping.path.front() == '[') return Unnamed(mapping.path);
  char suffix[32];
  std::snprintf(suffix, sizeof(suffix), "+0x%lx", offset);
  return Unnamed(ToUtf8(BaseName(mapping.path)) + suffix);
}

void Symbolizer::RefreshKernel() {
  if (kernel_read_ && window_ - kernel_window_ < kWindowsBetweenModuleChecks) return;
  kernel_window_ = window_;
  std::string modules =
      ModuleNames(ReadFile(proc_root_ + "/modules", kMaxModulesBytes).value_or(std::string()));
  if (kernel_read_ && modules == modules_) return;
  kernel_read_ = true;
  modules_ = std::move(modules);
  Result<KernelSymbols> symbols = KernelSymbols::Read(proc_root_ + "/kallsyms");
  if (symbols.ok())
    kernel_ = *std::move(symbols);
  else
    Log(LogLevel::kWarn, "kernel frames have no names", {{"error", symbols.status()}});
}

const SymbolName& Symbolizer::KernelName(uint64_t address) {
  RefreshKernel();
  const std::string_view name = kernel_.Find(address);
  if (name.empty()) return Unnamed("[kernel]");
  last_.name = name;
  last_.system_name = name;
  return last_;
}

std::string Symbolizer::BuildId(const ImageMapping& mapping) {
  SymbolFile* const file = FileOf(mapping);
  return file == nullptr ? std::string() : file->build_id();
}

const std::string& Symbolizer::KernelBuildId() {
  constexpr size_t kMaxNotesBytes = 64 << 10;
  if (kernel_build_id_.empty()) {
    const Result<std::string> notes = ReadFile("/sys/kernel/notes", kMaxNotesBytes);
    if (notes.ok()) kernel_build_id_ = BuildIdOfNotes(*notes);
  }
  return kernel_build_id_;
}

size_t Symbolizer::Bytes() const {
  size_t bytes = 0;
  for (const auto& [id, cached] : files_) {
    if (cached.file) bytes += cached.file->Bytes();
  }
  return bytes;
}

void Symbolizer::EndWindow() {
  ++window_;
  size_t bytes = Bytes();
  while (files_.size() > kMaxSymbolFiles || (bytes > max_bytes_ && !files_.empty())) {
    auto oldest = files_.begin();
    for (auto it = files_.begin(); it != files_.end(); ++it) {
      if (it->second.last_window < oldest->second.last_window) oldest = it;
    }
    files_.erase(oldest);
    bytes = Bytes();
  }
  std::erase_if(tables_, [](const auto& item) { return item.second.expired(); });
  failing_ns_ = 0;
  parser_->Rest();
}

}  // namespace flamefleet::agent
