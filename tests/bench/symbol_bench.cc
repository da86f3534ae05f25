// SPDX-License-Identifier: Apache-2.0
// What naming costs, for each program: its table (the parsing child included, which runs already),
// a name asked for the first time, and a name that is known; of one with DWARF also what a window's
// time for source lines is enough for.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <vector>

#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbolizer.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kAddresses = 2000;
constexpr size_t kCacheBytes = 256 << 20;

double Micros(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

void Measure(Symbolizer* symbolizer, const ProcessImage& image, const std::string& path) {
  Result<MappedFile> file = image.root->OpenFile(path);
  if (!file.ok()) return;
  const ElfFile elf = *ReadElfFile(file->fd.get());
  const ImageMapping mapping{.start = 0,
                             .end = UINT64_MAX,
                             .path = path,
                             .file = std::make_shared<const MappedFile>(*std::move(file))};
  std::mt19937_64 random(5);
  std::vector<uint64_t> offsets;
  for (const ElfFile::Segment& segment : elf.segments) {
    if (!segment.executable) continue;
    while (offsets.size() < kAddresses)
      offsets.push_back(segment.offset + random() % segment.size);
  }
  const auto run = [&](size_t count) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < count; ++i)
      symbolizer->UserName(image, mapping, offsets[i]);
    return Micros(std::chrono::steady_clock::now() - start);
  };
  const double table = run(1);
  const double first = run(kAddresses) / kAddresses;
  const double later = run(kAddresses) / kAddresses;
  std::printf("%-50s table %8.1f ms, a name first %6.2f us, later %6.3f us\n", path.c_str(),
              table / 1000, first, later);
  const auto count = [symbolizer](LineOutcome outcome) {
    return symbolizer->line_counts()[static_cast<size_t>(outcome)];
  };
  const uint64_t found = count(LineOutcome::kFound);
  const uint64_t late = count(LineOutcome::kLate);
  for (const uint64_t offset : offsets)
    symbolizer->WantLines(image, mapping, offset);
  const auto start = std::chrono::steady_clock::now();
  symbolizer->ResolveLines();
  const double time = Micros(std::chrono::steady_clock::now() - start);
  std::printf("%50s lines of %zu addresses %8.1f ms, late %zu\n", "",
              static_cast<size_t>(count(LineOutcome::kFound) - found), time / 1000,
              static_cast<size_t>(count(LineOutcome::kLate) - late));
}

}  // namespace
}  // namespace flamefleet::agent

int main(int argc, char** argv) {
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const ProcessImage image{.root = RootDirectory::Open("/proc", static_cast<uint32_t>(::getpid()))};
  Symbolizer symbolizer("/proc", kCacheBytes);
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (paths.empty()) {
    paths = {"/usr/lib/x86_64-linux-gnu/libc.so.6",
             "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
             "/usr/bin/node",
             "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
             "/usr/bin/containerd",
             "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"};
  }
  // The child starts with the first file.
  Measure(&symbolizer, image, "/usr/bin/true");
  for (const std::string& path : paths)
    Measure(&symbolizer, image, path);
}
