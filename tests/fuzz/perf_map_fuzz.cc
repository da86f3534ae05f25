// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/parse/wire.h"
#include "agent/symbol/perf_map.h"
#include "base/fd.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const UniqueFd fd(::memfd_create("map", MFD_CLOEXEC));
  FF_CHECK(::write(fd.get(), data, size) == static_cast<ssize_t>(size));
  const int files[] = {fd.get()};
  for (const uint64_t begins_inside : {uint64_t{0}, uint64_t{1}}) {
    ByteWriter arguments;
    arguments.Fixed(uint64_t{0});
    arguments.Fixed(uint64_t{size} + 1);  // a whole chunk would mean a page fault for each 4 KiB
    arguments.Fixed(begins_inside);
    const Result<std::string> answer = AnswerPerfMap(files, arguments.Take());
    FF_CHECK(answer.ok());
    // What our own parser writes, the agent takes.
    PerfMap map;
    FF_CHECK(map.Add(*answer).ok());
    FF_CHECK(map.size() <= size / 4);
    for (uint64_t address = 0; address < 1 << 12; address += 7)
      FF_CHECK(map.Find(address).size() <= kMaxMadeNameBytes);
  }
  // And of an answer that is not its own, nothing worse than an error.
  PerfMap map;
  map.Add({reinterpret_cast<const char*>(data), size}).IgnoreError();
  return 0;
}
