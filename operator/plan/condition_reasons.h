// SPDX-License-Identifier: Apache-2.0
// Reasons of conditions that are about an object as a whole; what is about one pod has its reason
// from base/reasons.h. docs/reasons.md explains both.
#pragma once

#include <array>
#include <string_view>

namespace flamefleet::plan::condition_reasons {

// All three kinds
inline constexpr std::string_view kAccepted = "Accepted";
// ProfilingTarget
inline constexpr std::string_view kAllPodsProfiled = "AllPodsProfiled";
inline constexpr std::string_view kNoPods = "NoPods";
inline constexpr std::string_view kNamespaceNotWatched = "NamespaceNotWatched";
inline constexpr std::string_view kSeveralReasons = "SeveralReasons";
inline constexpr std::string_view kNothingToDeliver = "NothingToDeliver";
inline constexpr std::string_view kStarting = "Starting";
// ProfilingBackend
inline constexpr std::string_view kAnotherDefault = "AnotherDefault";
inline constexpr std::string_view kStoreNotAvailable = "StoreNotAvailable";
inline constexpr std::string_view kStoreAvailable = "StoreAvailable";
inline constexpr std::string_view kDelivering = "Delivering";
inline constexpr std::string_view kNotUsed = "NotUsed";
inline constexpr std::string_view kStoreNotApplied = "StoreNotApplied";
inline constexpr std::string_view kNotStalled = "NotStalled";
// AgentPool
inline constexpr std::string_view kDaemonSetRefused = "DaemonSetRefused";
inline constexpr std::string_view kNamespacesNotRead = "NamespacesNotRead";
inline constexpr std::string_view kPodsNotCreated = "PodsNotCreated";
inline constexpr std::string_view kConflict = "Conflict";
inline constexpr std::string_view kAgentNotScheduled = "AgentNotScheduled";
inline constexpr std::string_view kImageNotPulled = "ImageNotPulled";
inline constexpr std::string_view kAgentCrashes = "AgentCrashes";
inline constexpr std::string_view kAgentNotStarted = "AgentNotStarted";
inline constexpr std::string_view kNoDaemonSet = "NoDaemonSet";
inline constexpr std::string_view kRollingOut = "RollingOut";
inline constexpr std::string_view kNoNodes = "NoNodes";
inline constexpr std::string_view kAgentsNotReady = "AgentsNotReady";
inline constexpr std::string_view kAllNodesProfiling = "AllNodesProfiling";

inline constexpr std::array kAll = {
    kAccepted,          kAllPodsProfiled,     kNoPods,           kSeveralReasons,
    kAnotherDefault,    kStoreNotAvailable,   kStoreAvailable,   kDelivering,
    kNotUsed,           kDaemonSetRefused,    kPodsNotCreated,   kConflict,
    kNoDaemonSet,       kRollingOut,          kNoNodes,          kAgentNotScheduled,
    kImageNotPulled,    kAgentCrashes,        kAgentNotStarted,  kAgentsNotReady,
    kAllNodesProfiling, kNothingToDeliver,    kStarting,         kStoreNotApplied,
    kNotStalled,        kNamespaceNotWatched, kNamespacesNotRead};

}  // namespace flamefleet::plan::condition_reasons
