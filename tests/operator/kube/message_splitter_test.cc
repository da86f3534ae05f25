// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/message_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/wire_writer.h"

namespace flamefleet {
namespace {

using testing::ElementsAre;

const std::string kMagic("k8s\0", 4);

// As the server sends a list of these items.
std::string List(const std::vector<std::string>& items) {
  WireWriter list;
  list.Bytes(1, WireWriter().Bytes(2, "42").Bytes(3, "token").text());
  for (const std::string& item : items)
    list.Bytes(2, item);
  list.Number(9, 1 << 20).Bytes(10, "from the future");
  return kMagic + WireWriter()
                      .Bytes(1, WireWriter().Bytes(1, "v1").Bytes(2, "PodList").text())
                      .Bytes(2, list.text())
                      .Bytes(3, "")
                      .Bytes(4, "")
                      .text();
}

std::string Frame(const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>(size >> shift);
  return frame + text;
}

struct Outcome {
  std::vector<std::string> messages;
  std::string metadata;
  Status status;
};

Outcome SplitList(const std::string& text, size_t piece = 1 << 20) {
  Outcome outcome;
  MessageListSplitter splitter([&](std::string_view message) {
    outcome.messages.emplace_back(message);
    return OkStatus();
  });
  for (size_t at = 0; at < text.size() && outcome.status.ok(); at += piece)
    outcome.status = splitter.Feed(std::string_view(text).substr(at, piece));
  if (outcome.status.ok()) outcome.status = splitter.Finish();
  outcome.metadata = splitter.metadata();
  return outcome;
}

Outcome SplitFrames(const std::string& text, size_t piece = 1 << 20) {
  Outcome outcome;
  MessageFrameSplitter splitter([&](std::string_view message) {
    outcome.messages.emplace_back(message);
    return OkStatus();
  });
  for (size_t at = 0; at < text.size() && outcome.status.ok(); at += piece)
    outcome.status = splitter.Feed(std::string_view(text).substr(at, piece));
  if (outcome.status.ok()) outcome.status = splitter.Finish();
  return outcome;
}

TEST(MessageListSplitter, ItemsComeOutWhateverThePieces) {
  const std::string large(300, 'x');
  const std::string text = List({"one", "", large, "four"});
  for (const size_t piece : {1UL, 2UL, 3UL, 7UL, 1UL << 20}) {
    const Outcome outcome = SplitList(text, piece);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_THAT(outcome.messages, ElementsAre("one", "", large, "four"));
    EXPECT_EQ(outcome.metadata, WireWriter().Bytes(2, "42").Bytes(3, "token").text());
  }
}

TEST(MessageListSplitter, AListThatIsCutAnywhereIsDataLoss) {
  const std::string text = List({"one", "two"});
  const size_t end = text.rfind("from the future") + std::string("from the future").size();
  for (size_t size = 0; size < end; ++size) {
    EXPECT_EQ(SplitList(text.substr(0, size)).status.code(), StatusCode::kDataLoss) << size;
  }
}

TEST(MessageListSplitter, WhatIsNoListIsDataLoss) {
  const std::string list = WireWriter().Bytes(2, "item").text();
  const std::string rows[] = {
      "{\"kind\":\"PodList\"}",
      kMagic + std::string("\x00", 1),                             // field number 0
      kMagic + WireWriter().Bytes(1, "x").text(),                  // no list
      kMagic + WireWriter().Bytes(2, list).Bytes(2, list).text(),  // two
      kMagic + WireWriter().Bytes(2, list.substr(0, 3)).text(),    // its item ends after it
      kMagic + WireWriter().Bytes(2, list.substr(0, 1)).text(),    // its header ends after it
      kMagic + std::string(30, '\xff'),                            // a varint without end
      kMagic + "\x0b",                                             // a group
  };
  for (const std::string& row : rows)
    EXPECT_EQ(SplitList(row).status.code(), StatusCode::kDataLoss) << row;
}

TEST(MessageListSplitter, AnItemOverTheBoundIsRefusedBeforeItIsRead) {
  std::string item("\x12\xff\xff\xff\x0f", 5);  // 32 MB
  std::string list("\x12\xff\xff\xff\xff\x0f", 6);
  EXPECT_EQ(SplitList(kMagic + list + item).status.code(), StatusCode::kResourceExhausted);
}

TEST(MessageFrameSplitter, FramesComeOutWhateverThePieces) {
  const std::string large(70'000, 'x');
  const std::string text = Frame("one") + Frame(large) + Frame("") + Frame("four");
  for (const size_t piece : {1UL, 3UL, 4096UL, 1UL << 20}) {
    const Outcome outcome = SplitFrames(text, piece);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_THAT(outcome.messages, ElementsAre("one", large, "", "four"));
  }
}

TEST(MessageFrameSplitter, AFrameThatIsCutIsDataLossAndOneOverTheBoundIsRefused) {
  EXPECT_EQ(SplitFrames(Frame("event").substr(0, 6)).status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(SplitFrames(std::string("\x00\x00", 2)).status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(SplitFrames("\xff\xff\xff\xff").status.code(), StatusCode::kResourceExhausted);
}

TEST(MessageSplitter, AnErrorOfTheHandlerEndsTheStream) {
  MessageListSplitter list([](std::string_view) { return CancelledError("enough"); });
  EXPECT_EQ(list.Feed(List({"one"})).code(), StatusCode::kCancelled);
  MessageFrameSplitter frames([](std::string_view) { return CancelledError("enough"); });
  EXPECT_EQ(frames.Feed(Frame("one")).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace flamefleet
