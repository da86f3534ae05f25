// SPDX-License-Identifier: Apache-2.0
// Symbolizer: names for addresses of user space and of the kernel.
//
// Tables are built at the first address of a file and kept, least recently used first out. Files
// with the same build ID and size share one table, so libc is read once per node, not per
// container. Kernel symbols are read at the first kernel frame and again when the set of modules
// changed.
//
// Thread: one owner. Bounds: tables of `max_bytes` after EndWindow, kMaxSymbolFiles of them.
// Errors: none; what has no name gets "file+0xoffset", "[anonymous]", "[unknown]" or "[kernel]".
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "agent/host/process.h"
#include "agent/symbol/kernel_symbols.h"
#include "agent/symbol/symbol_file.h"

namespace flamefleet::agent {

constexpr size_t kMaxSymbolFiles = 1024;

class Symbolizer {
 public:
  Symbolizer(std::string proc_root, size_t max_bytes);

  // The name of the function at an address inside `mapping`. Valid until EndWindow or the next call
  // for an address without a known function.
  const SymbolName& UserName(const ImageMapping& mapping, uint64_t address);
  const SymbolName& KernelName(uint64_t address);

  std::string BuildId(const ImageMapping& mapping);
  const std::string& KernelBuildId();

  // Evicts down to the limit.
  void EndWindow();

  size_t Bytes() const;
  uint64_t unnamed_addresses() const { return unnamed_; }

 private:
  struct FileId {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size = 0;
    int64_t modified_ns = 0;
    friend auto operator<=>(const FileId&, const FileId&) = default;
  };
  struct Cached {
    std::shared_ptr<SymbolFile> file;
    uint64_t last_window = 0;
  };

  SymbolFile* FileOf(const ImageMapping& mapping);
  std::shared_ptr<SymbolFile> OpenShared(const std::shared_ptr<const MappedFile>& file);
  void RefreshKernel();
  const SymbolName& Unnamed(std::string name);

  const std::string proc_root_;
  const size_t max_bytes_;
  std::map<FileId, Cached> files_;
  std::map<std::string, std::weak_ptr<SymbolFile>> by_build_id_;  // key: build ID and size
  std::unique_ptr<SymbolFile> vdso_;
  KernelSymbols kernel_;
  std::string kernel_build_id_;
  std::string modules_;         // names of the modules as of kernel_
  uint64_t kernel_window_ = 0;  // when modules_ was last looked at
  bool kernel_read_ = false;
  uint64_t window_ = 1;
  uint64_t unnamed_ = 0;
  SymbolName last_;
};

}  // namespace flamefleet::agent
