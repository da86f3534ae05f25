// SPDX-License-Identifier: Apache-2.0
// Parts that the controllers have in common. Only for the .cc files of this folder.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/controllers.h"

namespace flamefleet {

// `judged`: the object has a status already, which may wait for agents that are coming back.
inline plan::StatusInput StatusInputNow(const ControllerContext& context, bool judged) {
  const std::chrono::nanoseconds up(context.clock.MonotonicNanos() - context.started_ns);
  return {.now_ns = context.clock.WallNanos(), .settled = !judged || up >= kSettleTime};
}

// True when the status may become another one by time alone.
inline bool MustRecheck(const std::vector<plan::PodView>& views, const plan::StatusInput& input) {
  return !input.settled || std::ranges::any_of(views, [](const plan::PodView& view) {
    return view.node.report == nullptr || !view.node.report->connected;
  });
}

// Says on the object that what the operator made of it was refused; what is tried again soon is not
// worth a word.
inline void SayIfRefused(const ControllerContext& context, const Resource& resource,
                         const api::ObjectMeta& meta, const Status& applied) {
  if (applied.code() != StatusCode::kInvalidArgument &&
      applied.code() != StatusCode::kPermissionDenied) {
    return;
  }
  context.events.Record(resource, meta, {true, "ApplyRefused", "Apply", ErrorMessage(applied)});
}

// Writes `want` where it differs from the object's status; the outcome looks again when the write
// has to wait, or when `recheck` is true.
template <typename T, typename StatusType>
Result<Controller::Outcome> WriteStatus(const ControllerContext& context, const Resource& resource,
                                        const T& object, const StatusType& want, bool recheck,
                                        const std::stop_token& stop) {
  FF_ASSIGN_OR_RETURN(const std::chrono::nanoseconds wait,
                      context.status.Write(resource, object.meta, api::EncodeStatus(object.status),
                                           api::EncodeStatus(want), stop));
  if (wait.count() > 0) return Controller::Outcome{wait};
  return Controller::Outcome{recheck ? kRecheckInterval : std::chrono::nanoseconds(0)};
}

}  // namespace flamefleet
