// SPDX-License-Identifier: Apache-2.0
// libprotobuf is the judge of what is encoded by hand.
#include "agent/push/push_request.h"

#include <gtest/gtest.h>

#include "proto/pyroscope/push.pb.h"

namespace flamefleet::agent {
namespace {

FinishedProfile Profile(Labels labels, size_t bytes) {
  return {.collection = {.type = ProfileType::kMemory},
          .labels = std::move(labels),
          .pprof = std::string(bytes, 'x')};
}

std::string Encoded(const FinishedProfile& profile) {
  std::string encoded = "of the push before";
  EncodePushRequest(profile, &encoded);
  return encoded;
}

// Names and values, as the library reads them.
std::string LabelsOf(const std::string& encoded) {
  pyroscope::PushRequest request;
  if (!request.ParseFromString(encoded)) return "damaged";
  std::string text;
  for (const auto& label : request.series(0).labels())
    text += label.name() + "=" + label.value() + ",";
  return text;
}

TEST(EncodePushRequest, IsWhatTheLibraryWouldWrite) {
  for (const size_t bytes :
       {size_t{1}, size_t{100}, size_t{127}, size_t{128}, size_t{16'384}, size_t{3'000'000}}) {
    const FinishedProfile profile =
        Profile({{"service_name", "shop"}, {"pod", std::string(bytes % 300 + 1, 'p')}}, bytes);
    const std::string encoded = Encoded(profile);
    pyroscope::PushRequest request;
    ASSERT_TRUE(request.ParseFromString(encoded)) << bytes;
    EXPECT_EQ(request.SerializeAsString(), encoded) << bytes;
    EXPECT_EQ(request.series(0).samples(0).raw_profile(), profile.pprof) << bytes;
  }
}

TEST(EncodePushRequest, LabelsAreInOrderAndOursWin) {
  EXPECT_EQ(LabelsOf(Encoded(Profile({}, 1))), "__delta__=false,__name__=memory,");
  EXPECT_EQ(LabelsOf(Encoded(Profile({{"Z", "1"}, {"__e", "2"}, {"a", ""}}, 1))),
            "Z=1,__delta__=false,__e=2,__name__=memory,a=,");
  EXPECT_EQ(LabelsOf(Encoded(Profile({{"__name__", "x"}, {"__delta__", "y"}}, 1))),
            "__delta__=false,__name__=memory,");
}

}  // namespace
}  // namespace flamefleet::agent
