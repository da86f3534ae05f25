// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "agent/parse/wire.h"
#include "agent/symbol/jit_dump.h"
#include "base/fd.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const UniqueFd fd(::memfd_create("dump", MFD_CLOEXEC));
  FF_CHECK(::write(fd.get(), data, size) == static_cast<ssize_t>(size));
  const int files[] = {fd.get()};
  ByteWriter arguments;
  arguments.Fixed(uint64_t{0});
  arguments.Fixed(uint64_t{size});
  const Result<std::string> answer = AnswerJitDump(files, arguments.Take());
  if (answer.ok()) {
    // What our own parser writes, the agent takes.
    JitDump dump;
    FF_CHECK(dump.Add(*answer).ok());
    FF_CHECK(dump.size() <= size / 16);
    for (uint64_t address = 0; address < 1 << 12; address += 7)
      FF_CHECK(dump.Find(address).size() <= kMaxMadeNameBytes);
  }
  // And of an answer that is not its own, nothing worse than an error.
  JitDump dump;
  dump.Add({reinterpret_cast<const char*>(data), size}).IgnoreError();
  return 0;
}
