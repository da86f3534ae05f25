// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/demangle.h"

// libiberty declares basename() unless told that the system has one.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <csetjmp>
#include <cstring>

namespace flamefleet::agent {
namespace {

struct Output {
  char text[kMaxDemangledBytes];
  size_t size = 0;
  std::jmp_buf full;
};

// libiberty has no way to stop early; its callback form keeps nothing on the heap, so leaving it by
// longjmp loses nothing.
void Append(const char* text, size_t size, void* context) {
  auto* const output = static_cast<Output*>(context);
  if (size > sizeof(output->text) - output->size) std::longjmp(output->full, 1);
  std::memcpy(output->text + output->size, text, size);
  output->size += size;
}

// Plain C between setjmp and the end: no object with a destructor.
bool DemangleInto(const char* name, Output* output) {
  if (setjmp(output->full) != 0) return false;
  constexpr int kOptions = DMGL_NO_OPTS;  // no parameters
  if (rust_demangle_callback(name, kOptions, Append, output) != 0) return true;
  output->size = 0;
  return cplus_demangle_v3_callback(name, kOptions, Append, output) != 0;
}

}  // namespace

std::string Demangle(const std::string& name) {
  const bool mangled = name.starts_with("_Z") || name.starts_with("_R");
  if (!mangled || name.size() > kMaxDemangledBytes) return name;
  Output output;
  if (!DemangleInto(name.c_str(), &output)) return name;
  return std::string(output.text, output.size);
}

}  // namespace flamefleet::agent
