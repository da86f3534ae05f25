// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/packed_pod.h"

#include <gtest/gtest.h>

#include <functional>

namespace flamefleet {
namespace {

api::Pod FullPod() {
  api::Pod pod;
  pod.meta = {.ns = "shop",
              .name = "checkout-1",
              .uid = "u1",
              .generation = -3,
              .creation_ns = 1'700'000'000'000'000'000,
              .deleting = true};
  pod.node = "n1";
  pod.ip = "10.0.0.7";
  pod.ready = true;
  pod.phase = api::PodPhase::kFailed;
  pod.workload_kind = "Deployment";
  pod.workload_name = "checkout";
  pod.labels = {{"a", ""}, {"app", std::string(300, 'x')}, {"", "b"}};
  pod.annotations = {{"pyroscope.io/scrape", "true"}};
  pod.containers = {
      {"main", api::ContainerKind::kMain, "abc", true, {{"pprof", 6060}, {"", -1}}},
      {"", api::ContainerKind::kInit, "", false, {}},
      {"mesh", api::ContainerKind::kSidecar, "def", true, {}},
  };
  return pod;
}

TEST(PackedPod, UnpacksToWhatWasPacked) {
  TextPool pool;
  EXPECT_EQ(Unpack(Pack(FullPod(), pool)), FullPod());
  EXPECT_EQ(Unpack(Pack(api::Pod(), pool)), api::Pod());
}

TEST(PackedPod, TheVersionIsForgotten) {
  TextPool pool;
  api::Pod pod = FullPod();
  pod.meta.resource_version = "42";
  EXPECT_EQ(Pack(pod, pool), Pack(FullPod(), pool));
}

TEST(PackedPod, EqualOnlyWhenEveryFieldIs) {
  TextPool pool;
  const PackedPod packed = Pack(FullPod(), pool);
  const std::function<void(api::Pod&)> changes[] = {
      [](api::Pod& pod) { pod.meta.ns = "x"; },
      [](api::Pod& pod) { pod.meta.name = "x"; },
      [](api::Pod& pod) { pod.meta.uid = "x"; },
      [](api::Pod& pod) { pod.meta.generation = 9; },
      [](api::Pod& pod) { pod.meta.creation_ns = 9; },
      [](api::Pod& pod) { pod.meta.deleting = false; },
      [](api::Pod& pod) { pod.node = ""; },
      [](api::Pod& pod) { pod.ip = "x"; },
      [](api::Pod& pod) { pod.ready = false; },
      [](api::Pod& pod) { pod.phase = api::PodPhase::kPending; },
      [](api::Pod& pod) { pod.workload_kind = "x"; },
      [](api::Pod& pod) { pod.workload_name = "x"; },
      [](api::Pod& pod) { pod.labels.erase("a"); },
      [](api::Pod& pod) { pod.annotations.clear(); },
      [](api::Pod& pod) { pod.containers[2].name = "x"; },
      [](api::Pod& pod) { pod.containers[2].kind = api::ContainerKind::kInit; },
      [](api::Pod& pod) { pod.containers[2].id = "x"; },
      [](api::Pod& pod) { pod.containers[2].running = false; },
      [](api::Pod& pod) { pod.containers[0].ports[1].name = "x"; },
      [](api::Pod& pod) { pod.containers[0].ports[1].number = 9; },
      [](api::Pod& pod) { pod.containers.pop_back(); },
  };
  int row = 0;
  for (const auto& change : changes) {
    api::Pod pod = FullPod();
    change(pod);
    EXPECT_NE(Pack(pod, pool), packed) << row;
    EXPECT_EQ(Unpack(Pack(pod, pool)), pod) << row++;
  }
}

TEST(PackedPod, PodsOfOneWorkloadShareTheirTexts) {
  TextPool pool;
  const PackedPod first = Pack(FullPod(), pool);
  const size_t texts = pool.size();
  api::Pod pod = FullPod();
  pod.meta.name = "checkout-2";
  pod.containers[0].id = "other";
  const PackedPod second = Pack(pod, pool);
  EXPECT_EQ(pool.size(), texts);
}

TEST(TextPool, ATextThatNobodyHoldsIsForgotten) {
  TextPool pool;
  {
    TextPool::Text text = pool.Intern("a");
    const TextPool::Text copy = text;
    text = pool.Intern("b");
    EXPECT_EQ(copy, pool.Intern("a"));
    EXPECT_EQ(pool.size(), 2U);
    text = {};
    EXPECT_EQ(pool.size(), 1U);
    const TextPool::Text& same = copy;
    text = same;
    EXPECT_EQ(text.view(), "a");
  }
  EXPECT_EQ(pool.size(), 0U);
  EXPECT_EQ(pool.Intern(""), TextPool::Text());
}

}  // namespace
}  // namespace flamefleet
