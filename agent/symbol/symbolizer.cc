// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbolizer.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "agent/symbol/debug_files.h"
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

Result<Symbolizer::Parsed> Symbolizer::Parse(Files files) {
  std::vector<int> fds;
  for (const std::shared_ptr<const MappedFile>& file : files)
    fds.push_back(file->fd.get());
  Parsed parsed{.files = std::move(files)};
  FF_ASSIGN_OR_RETURN(parsed.symbols, RequestSymbols(parser_.get(), fds, &parsed.encoded));
  return parsed;
}

std::unique_ptr<SymbolFile> Symbolizer::Make(const ProcessImage& image, Parsed parsed) {
  std::shared_ptr<const SymbolTable> table = Share(std::move(parsed.symbols.table), parsed.encoded);
  std::shared_ptr<const MappedFile> alternate = FindAlternate(image, parsed.symbols.alternate);
  return std::make_unique<SymbolFile>(std::move(parsed.files), std::move(parsed.symbols),
                                      std::move(table), std::move(alternate));
}

const std::shared_ptr<const RootDirectory>& Symbolizer::HostRoot() {
  if (!host_root_) host_root_ = RootDirectory::Open(proc_root_, 1);
  return host_root_;
}

std::shared_ptr<const MappedFile> Symbolizer::FindAlternate(const ProcessImage& image,
                                                            const AlternateLink& link) {
  if (link.build_id.empty()) return nullptr;
  // The parser checks the build ID; here only what is there.
  for (const std::string& path : {DebugFileOfBuildId(link.build_id), link.path}) {
    if (!path.starts_with('/')) continue;
    for (const std::shared_ptr<const RootDirectory>& root : {image.root, HostRoot()}) {
      if (!root) continue;
      Result<MappedFile> file = root->OpenFile(path);
      if (file.ok()) return std::make_shared<const MappedFile>(*std::move(file));
    }
  }
  return nullptr;
}

Symbolizer::Files Symbolizer::FindDebugFiles(const ProcessImage& image, const std::string& path,
                                             const ProgramSymbols& symbols) {
  Files files;
  const auto add = [&files](const std::shared_ptr<const RootDirectory>& root,
                            const std::string& name) {
    if (!root || name.empty()) return;
    Result<MappedFile> file = root->OpenFile(name);
    if (file.ok()) files.push_back(std::make_shared<const MappedFile>(*std::move(file)));
  };
  const std::string by_build_id = DebugFileOfBuildId(symbols.build_id);
  add(image.root, by_build_id);
  for (const std::string& name : DebugFilesOfLink(path, symbols.debug_link))
    add(image.root, name);
  add(HostRoot(), by_build_id);
  return files;
}

std::unique_ptr<SymbolFile> Symbolizer::Open(const ProcessImage& image, const std::string& path,
                                             const std::shared_ptr<const MappedFile>& file,
                                             bool* may_retry, std::string* wanted) {
  if (!reads_new_files_ || failing_ns_ > kMaxFailingNanos) return nullptr;
  const int64_t start_ns = SystemClock().MonotonicNanos();
  const auto count_failure = [this, start_ns, may_retry](const Status& status) {
    failing_ns_ += SystemClock().MonotonicNanos() - start_ns;
    *may_retry |= MayPass(status);
  };
  Result<Parsed> program = Parse({file});
  if (!program.ok()) {
    if (program.status().code() == StatusCode::kUnavailable) return nullptr;
    count_failure(program.status());
    return std::make_unique<SymbolFile>(file);
  }
  const bool has_lines = program->symbols.dwarf_file || !lines_wanted_;
  if (program->symbols.has_symtab && has_lines) return Make(image, *std::move(program));
  Files debug_files = FindDebugFiles(image, path, program->symbols);
  if (debug_files.empty() && find_debug_file_ && !program->symbols.build_id.empty()) {
    *wanted = program->symbols.build_id;
    if (auto fetched = find_debug_file_(*wanted)) {
      debug_files.push_back(std::move(fetched));
      wanted->clear();
    }
  }
  for (const std::shared_ptr<const MappedFile>& debug : debug_files) {
    Result<Parsed> both = Parse({file, debug});
    if (both.ok()) return Make(image, *std::move(both));
    count_failure(both.status());
  }
  return Make(image, *std::move(program));
}

void Symbolizer::Load(const ProcessImage& image, const std::string& path,
                      const std::shared_ptr<const MappedFile>& file, Cached* cached) {
  constexpr uint64_t kFirstDistance = 6;  // windows; then four times as many
  bool may_retry = false;
  cached->wanted.clear();
  cached->file = Open(image, path, file, &may_retry, &cached->wanted);
  cached->retry_window = 0;
  if (may_retry && ++cached->strikes < kMaxFileStrikes)
    cached->retry_window = window_ + (kFirstDistance << (2 * (cached->strikes - 1)));
}

SymbolFile* Symbolizer::FileOf(const ProcessImage& image, const ImageMapping& mapping) {
  const std::shared_ptr<const MappedFile>& file = mapping.path == "[vdso]" ? vdso_ : mapping.file;
  if (!file) return nullptr;
  Cached& cached = files_[file->id()];
  if (!cached.file) Load(image, mapping.path, file, &cached);
  cached.last_window = window_;
  return cached.file.get();
}

const Symbolizer::MadeCode& Symbolizer::MadeCodeOf(const ProcessImage& image) {
  MadeCode& code = made_code_[image.id];
  if (code.last_window != window_ && reads_new_files_ && failing_ns_ <= kMaxFailingNanos) {
    code.last_window = window_;
    if (code.retry_window <= window_) ReadMadeCode(image, &code);
  }
  if (code.retry_window > window_) names_.CountRefused();
  return code;
}

void Symbolizer::ReadMadeCode(const ProcessImage& image, MadeCode* code) {
  // Its own file, or one that root made for it.
  const auto is_its_own = [&image](const MappedFile& file) {
    return file.owner == image.user || file.owner == 0;
  };
  const std::string pid = std::to_string(image.namespace_pid);
  Result<MappedFile> map = NotFoundError("open perf map: no root");
  if (image.root) map = image.root->OpenFile("/tmp/perf-" + pid + ".map");
  const bool has_map = map.ok() && is_its_own(*map);
  const auto dump = std::ranges::find_if(image.mappings, [&](const ImageMapping& mapping) {
    return mapping.file && BaseName(mapping.path) == "jit-" + pid + ".dump" &&
           is_its_own(*mapping.file);
  });
  const bool has_dump = dump != image.mappings.end();
  if (!has_map && !has_dump) return;
  const int64_t start_ns = SystemClock().MonotonicNanos();
  const bool is_map_read = !has_map || code->map.Update(*map, parser_.get()).ok();
  const bool is_dump_read = !has_dump || code->dump.Update(*dump->file, parser_.get()).ok();
  if (!is_map_read || !is_dump_read) failing_ns_ += SystemClock().MonotonicNanos() - start_ns;
  MakeRoomForMadeCode(code);
}

void Symbolizer::MakeRoomForMadeCode(MadeCode* code) {
  while (MadeCodeBytes() > kMaxMadeCodeBytes) {
    const auto oldest = std::ranges::min_element(
        made_code_, {}, [](const auto& item) { return item.second.last_window; });
    if (oldest->second.last_window == window_) {
      MadeCode refused{.last_window = window_, .retry_window = window_ + kRefusedMadeCodeWindows};
      std::swap(*code, refused);  // an assignment would keep the memory
      return;
    }
    made_code_.erase(oldest);
  }
}

size_t Symbolizer::MadeCodeBytes() const {
  size_t bytes = 0;
  for (const auto& [id, code] : made_code_)
    bytes += code.Bytes();
  return bytes;
}

const SymbolName& Symbolizer::Unnamed(std::string name) {
  ++unnamed_;
  last_.name = std::move(name);
  last_.system_name.clear();
  return last_;
}

const SymbolName& Symbolizer::UserName(const ProcessImage& image, const ImageMapping& mapping,
                                       uint64_t address) {
  uint64_t offset = address - mapping.start + mapping.offset;
  SymbolFile* const file = FileOf(image, mapping);
  if (file != nullptr) {
    const SymbolFile::Place place = file->Find(offset, &names_);
    if (place.name != nullptr) return *place.name;
    offset = place.function_offset;
  }
  // What is in no program was made at run time; addresses in its map are those of the process.
  const bool is_made = file == nullptr || !file->is_program();
  if (is_made && image.namespace_pid != 0) {
    if (const std::string_view name = MadeCodeOf(image).Find(address); !name.empty()) {
      last_.name = ToUtf8(name);
      last_.system_name = last_.name;
      return last_;
    }
  }
  if (mapping.path.empty()) return Unnamed("[anonymous]");
  if (mapping.path.front() == '[') return Unnamed(mapping.path);
  char suffix[32];
  std::snprintf(suffix, sizeof(suffix), "+0x%lx", offset);
  return Unnamed(ToUtf8(BaseName(mapping.path)) + suffix);
}

std::span<const Symbolizer::Frame> Symbolizer::UserFrames(const ProcessImage& image,
                                                          const ImageMapping& mapping,
                                                          uint64_t address) {
  static const SymbolName kUnknown{.name = "[unknown]", .system_name = ""};
  frames_.clear();
  const uint64_t offset = address - mapping.start + mapping.offset;
  SymbolFile* const file = FileOf(image, mapping);
  if (file != nullptr && lines_wanted_) {
    for (const FileLines::Frame& frame : file->LinesOf(offset)) {
      const SymbolName* const name = frame.function == nullptr ? &kUnknown : frame.function;
      frames_.push_back({.name = name, .file = frame.file, .line = frame.line});
    }
  }
  // The outermost one is called as its symbol is, with and without lines.
  if (frames_.empty()) frames_.emplace_back();
  const bool has_name = frames_.back().name != nullptr && frames_.back().name != &kUnknown;
  if (!has_name || file->Find(offset, &names_).name != nullptr)
    frames_.back().name = &UserName(image, mapping, address);
  return frames_;
}

void Symbolizer::WantLines(const ProcessImage& image, const ImageMapping& mapping,
                           uint64_t address) {
  if (!lines_wanted_ || !reads_new_files_) return;  // nobody would ask
  if (SymbolFile* const file = FileOf(image, mapping))
    file->WantLines(address - mapping.start + mapping.offset);
}

void Symbolizer::ResolveLines() {
  std::chrono::nanoseconds left = kMaxLineTime;
  for (const auto& [id, cached] : files_) {
    if (!cached.file || !cached.file->wants_lines()) continue;
    const int64_t start_ns = SystemClock().MonotonicNanos();
    cached.file->ResolveLines(parser_.get(),
                              std::min<std::chrono::nanoseconds>(left, kMaxLineTimeOfFile), &names_,
                              &line_counts_);
    left -= std::chrono::nanoseconds(SystemClock().MonotonicNanos() - start_ns);
  }
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

std::string Symbolizer::BuildId(const ProcessImage& image, const ImageMapping& mapping) {
  SymbolFile* const file = FileOf(image, mapping);
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

size_t Symbolizer::FileBytes() const {
  size_t bytes = 0;
  for (const auto& [id, cached] : files_) {
    if (cached.file) bytes += cached.file->Bytes();
  }
  return bytes;
}

void Symbolizer::EndWindow() {
  ++window_;
  std::erase_if(files_, [this](const auto& item) {
    return item.second.last_window + kIdleFileWindows < window_;
  });
  for (auto& [id, cached] : files_) {
    if (cached.retry_window != 0 && window_ >= cached.retry_window) cached.file.reset();
    if (!cached.wanted.empty() && find_debug_file_(cached.wanted)) cached.file.reset();
    if (cached.file) cached.file->EndWindow();
  }
  names_.Refill(kMaxNewNameBytes);
  size_t bytes = FileBytes();
  while (files_.size() > kMaxSymbolFiles || (bytes > max_bytes_ && !files_.empty())) {
    auto oldest = files_.begin();
    for (auto it = files_.begin(); it != files_.end(); ++it) {
      if (it->second.last_window < oldest->second.last_window) oldest = it;
    }
    files_.erase(oldest);
    bytes = FileBytes();
  }
  std::erase_if(tables_, [](const auto& item) { return item.second.expired(); });
  std::erase_if(made_code_, [this](const auto& item) {
    return item.second.last_window + kIdleWindows < window_;
  });
  failing_ns_ = 0;
  parser_->Rest();
}

}  // namespace flamefleet::agent
