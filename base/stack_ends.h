// SPDX-License-Identifier: Apache-2.0
// How the user stack of a sample can end: the one list, in the order of enum ff_stop of
// bpf/profiler.h. Agents report by these names, metrics and status use them; never renamed.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace flamefleet {

constexpr std::string_view kNoUserStack = "no_user_stack";  // a kernel thread, an exiting task
constexpr std::string_view kWholeStack = "complete";

constexpr std::array<std::string_view, 10> kStackEnds = {
    kNoUserStack, kWholeStack, "depth_limit", "fault",    "no_registers",
    "bad_rule",   "not_ready", "no_mapping",  "no_table", "no_rule"};

// How many stacks ended in each way.
using StackEnds = std::array<uint64_t, kStackEnds.size()>;

}  // namespace flamefleet
