// SPDX-License-Identifier: Apache-2.0
// Turns mangled C++ and Rust names into what their authors wrote, without parameters.
//
// Thread: any. Bounds: input and output of kMaxDemangledBytes; no allocation besides the result. A
// short hostile name can stand for gigabytes of text: the work ends when the output is full.
// Errors: none; what is not mangled, or is too long either way, is returned as it is.
#pragma once

#include <string>

namespace flamefleet::agent {

constexpr size_t kMaxDemangledBytes = 4096;

std::string Demangle(const std::string& name);

}  // namespace flamefleet::agent
