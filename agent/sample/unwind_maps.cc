// SPDX-License-Identifier: Apache-2.0
#include "agent/sample/unwind_maps.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <numeric>
#include <string>
#include <vector>

#include "base/fd.h"

namespace flamefleet::agent {
namespace {

// An array map with this content, to be put into a map of maps, which keeps it.
template <typename T>
Result<UniqueFd> MakeArray(const char* name, std::span<const T> elements) {
  LIBBPF_OPTS(bpf_map_create_opts, create, .map_flags = BPF_F_INNER_MAP);
  auto count = static_cast<uint32_t>(elements.size());
  UniqueFd fd(
      bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), sizeof(T), count, &create));
  if (!fd.ok()) return ErrnoError(errno, std::string("create BPF map ") + name);
  std::vector<uint32_t> keys(elements.size());
  std::iota(keys.begin(), keys.end(), 0);
  LIBBPF_OPTS(bpf_map_batch_opts, update);
  if (bpf_map_update_batch(fd.get(), keys.data(), elements.data(), &count, &update) != 0)
    return ErrnoError(errno, std::string("fill BPF map ") + name);
  return fd;
}

Status Put(int outer_fd, const void* key, const UniqueFd& inner, const std::string& what) {
  const int fd = inner.get();
  if (bpf_map_update_elem(outer_fd, key, &fd, BPF_ANY) == 0) return OkStatus();
  if (errno == E2BIG) return ResourceExhaustedError(what + ": the BPF map is full");
  return ErrnoError(errno, what);
}

}  // namespace

Status UnwindMaps::AddTable(uint32_t number, std::span<const uint64_t> words) const {
  FF_ASSIGN_OR_RETURN(const UniqueFd fd, MakeArray("ff_table", words));
  return Put(tables_fd_, &number, fd, "add unwind table");
}

void UnwindMaps::RemoveTable(uint32_t number) const {
  bpf_map_delete_elem(tables_fd_, &number);
}

Status UnwindMaps::SetProcess(const ff_process_key& process,
                              std::span<const ff_mapping> mappings) const {
  FF_ASSIGN_OR_RETURN(const UniqueFd fd, MakeArray("ff_mappings", mappings));
  return Put(processes_fd_, &process, fd, "set mappings of process " + std::to_string(process.pid));
}

void UnwindMaps::RemoveProcess(const ff_process_key& process) const {
  bpf_map_delete_elem(processes_fd_, &process);
}

}  // namespace flamefleet::agent
