// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/object_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace flamefleet {
namespace {

using nlohmann::json;
using Mode = ObjectSplitter::Mode;
using testing::ElementsAre;
using testing::IsEmpty;

struct Split {
  std::vector<json> objects;
  std::string envelope;
  Status status;
};

Split FeedInPieces(Mode mode, const std::string& text, size_t piece_size) {
  Split split;
  ObjectSplitter splitter(mode, [&](std::string_view object) {
    split.objects.push_back(json::parse(object));
    return OkStatus();
  });
  for (size_t at = 0; at < text.size() && split.status.ok(); at += piece_size) {
    split.status = splitter.Feed(std::string_view(text).substr(at, piece_size));
  }
  if (split.status.ok()) split.status = splitter.Finish();
  split.envelope = splitter.envelope();
  return split;
}

// Strings with everything that could be taken for structure.
const json kTricky = {{"type", "ADDED"},
                      {"object", {{"a", "}{][\"\\"}, {"b", {1, {{"c", "\\\""}}}}, {"d", "ü😀\n"}}}};

TEST(ObjectSplitter, AStreamCutAnywhereGivesTheSameObjects) {
  const json second = {{"type", "BOOKMARK"}};
  const std::string text = kTricky.dump(1) + "\n" + second.dump() + kTricky.dump() + "\r\n";
  for (size_t size = 1; size <= text.size(); ++size) {
    const Split split = FeedInPieces(Mode::kStream, text, size);
    ASSERT_TRUE(split.status.ok()) << split.status;
    ASSERT_THAT(split.objects, ElementsAre(kTricky, second, kTricky)) << "pieces of " << size;
  }
}

TEST(ObjectSplitter, AListCutAnywhereGivesItsItemsAndItsEnvelope) {
  const json metadata = {{"resourceVersion", "42"}, {"continue", "a]}b"}};
  const json list = {{"kind", "PodList"}, {"metadata", metadata}, {"items", {kTricky, {{"x", 1}}}}};
  for (const std::string& text : {list.dump(), list.dump(2) + "\n"}) {
    for (size_t size = 1; size <= text.size(); ++size) {
      const Split split = FeedInPieces(Mode::kList, text, size);
      ASSERT_TRUE(split.status.ok()) << split.status;
      ASSERT_THAT(split.objects, ElementsAre(kTricky, json{{"x", 1}})) << "pieces of " << size;
      json envelope = list;
      envelope["items"] = json::array();
      ASSERT_EQ(json::parse(split.envelope), envelope);
    }
  }
}

TEST(ObjectSplitter, MetadataMayFollowTheItemsAndItemsMayBeEmptyOrNull) {
  for (const char* text : {R"({"items":[],"metadata":{"resourceVersion":"7"}})",
                           R"({"items":null,"metadata":{"resourceVersion":"7"}})"}) {
    const Split split = FeedInPieces(Mode::kList, text, 5);
    ASSERT_TRUE(split.status.ok()) << split.status;
    EXPECT_THAT(split.objects, IsEmpty());
    EXPECT_EQ(json::parse(split.envelope)["metadata"]["resourceVersion"], "7");
  }
}

TEST(ObjectSplitter, AStreamThatEndsInsideAnObjectIsDataLoss) {
  const std::string text = kTricky.dump();
  for (size_t keep = 1; keep < text.size(); ++keep) {
    const Split split = FeedInPieces(Mode::kStream, text.substr(0, keep), keep);
    ASSERT_EQ(split.status.code(), StatusCode::kDataLoss) << keep;
  }
  const std::string list = R"({"items":[{"a":1},{"b":2}],"metadata":{}})";
  for (size_t keep = 0; keep < list.size(); ++keep) {
    ASSERT_EQ(FeedInPieces(Mode::kList, list.substr(0, keep), 7).status.code(),
              StatusCode::kDataLoss)
        << keep;
  }
}

TEST(ObjectSplitter, TextThatIsNoObjectIsDataLoss) {
  for (const char* text : {"<html>", "null", "[{}]", "{} x", "}", "\"{}\""}) {
    EXPECT_EQ(FeedInPieces(Mode::kStream, text, 3).status.code(), StatusCode::kDataLoss) << text;
  }
  for (const char* text : {"<html>", "{\"items\":[1]}", "{\"items\":[\"x\"]}", "{} {}", "]"}) {
    EXPECT_EQ(FeedInPieces(Mode::kList, text, 3).status.code(), StatusCode::kDataLoss) << text;
  }
}

TEST(ObjectSplitter, AnEndlessObjectIsRefusedAtItsBound) {
  ObjectSplitter splitter(Mode::kStream, [](std::string_view) { return OkStatus(); });
  ASSERT_TRUE(splitter.Feed("{\"a\":\"").ok());
  const std::string piece(1 << 20, 'x');
  Status status;
  for (size_t fed = 0; fed <= ObjectSplitter::kMaxObjectBytes && status.ok(); fed += piece.size()) {
    status = splitter.Feed(piece);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

TEST(ObjectSplitter, AnErrorOfTheHandlerEndsTheStream) {
  int calls = 0;
  ObjectSplitter splitter(Mode::kStream, [&](std::string_view) {
    ++calls;
    return AbortedError("enough");
  });
  EXPECT_EQ(splitter.Feed("{}{}{}").code(), StatusCode::kAborted);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace flamefleet
