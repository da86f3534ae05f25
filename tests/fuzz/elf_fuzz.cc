// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "agent/symbol/symbol_request.h"
#include "base/fd.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  FF_CHECK(::write(fd.get(), data, size) == static_cast<ssize_t>(size));
  const int files[] = {fd.get(), fd.get()};
  for (const size_t count : {size_t{1}, size_t{2}}) {
    const Result<std::string> answer = AnswerSymbols(std::span(files).first(count), "");
    if (!answer.ok()) continue;
    // What our own parser writes, the agent takes.
    const Result<ProgramSymbols> program = DecodeSymbols(*answer);
    FF_CHECK(program.ok());
    FF_CHECK(program->table.size() <= 4 * size);
    for (uint64_t offset = 0; offset < 1 << 16; offset += 997) {
      const auto function = program->table.Find(program->AddressOfOffset(offset).value_or(offset));
      if (function && function->name) program->table.ReadName(files, *function->name).IgnoreError();
    }
  }
  return 0;
}
