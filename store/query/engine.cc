// SPDX-License-Identifier: Apache-2.0
#include "store/query/engine.h"

#include <algorithm>
#include <chrono>

namespace flamefleet::store {
namespace {

constexpr std::chrono::seconds kTurnTimeout{10};

}  // namespace

Result<MergedProfile> QueryEngine::Merge(const Selector& selector, const TimeRange& range,
                                         const MergedProfile* held) const {
  const size_t room = query_memory_ / 2;
  const size_t taken = held == nullptr ? 0 : pprof::BytesHeld(held->profile);
  return MergeProfiles(database_, *clock_, selector, range,
                       {.max_merge_bytes = room - std::min(room, taken)});
}

QueryTurn::QueryTurn(QueryEngine* engine) : engine_(engine) {
  if (engine_->slots_.try_acquire()) return;
  const bool may_wait = engine_->waiting_.fetch_add(1) < kMaxWaitingQueries;
  if (!may_wait || !engine_->slots_.try_acquire_for(kTurnTimeout)) {
    status_ = UnavailableError("too many queries run; try again");
  }
  engine_->waiting_.fetch_sub(1);
}

QueryTurn::~QueryTurn() {
  if (status_.ok()) engine_->slots_.release();
}

}  // namespace flamefleet::store
