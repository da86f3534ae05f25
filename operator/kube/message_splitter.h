// SPDX-License-Identifier: Apache-2.0
// MessageListSplitter, MessageFrameSplitter: cut the protobuf of a list or of a watch into its
// messages while it arrives; the counterpart of ObjectSplitter for JSON.
//
// A list is "k8s\0", then runtime.Unknown, whose field `raw` is the list, whose items are handed
// out one by one: a list of any length costs the memory of its largest object. A watch is frames,
// each with its length in four bytes before it.
//
// Thread: one. Bounds: a message of at most kMaxMessageBytes (a stored object has at most 1.5 MB).
// Errors: kDataLoss bytes that cannot be such a stream; kResourceExhausted a message over its
// bound; what the handler returns.
// Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace flamefleet {

using MessageHandler = std::function<Status(std::string_view message)>;

// The bytes of a message that arrive in any pieces.
class MessageCollector {
 public:
  static constexpr size_t kMaxMessageBytes = 8 << 20;

  // The next `size` bytes are a message for `handler`; no handler: they are stepped over.
  Status Begin(uint64_t size, const MessageHandler* handler);
  bool active() const { return left_ > 0; }
  // Takes what belongs to the message from the front of `piece`.
  Status Take(std::string_view& piece);

 private:
  const MessageHandler* handler_ = nullptr;
  uint64_t left_ = 0;
  std::string collected_;
};

class MessageListSplitter {
 public:
  explicit MessageListSplitter(MessageHandler on_item) : on_item_(std::move(on_item)) {}
  MessageListSplitter(const MessageListSplitter&) = delete;
  MessageListSplitter& operator=(const MessageListSplitter&) = delete;

  Status Feed(std::string_view piece);
  // The stream has ended: kDataLoss when it was cut.
  Status Finish() const;
  // The ListMeta; empty until it came.
  const std::string& metadata() const { return metadata_; }

 private:
  Status TakeMagic(std::string_view& piece);
  Status TakeHeader(char byte);

  const MessageHandler on_item_;
  const MessageHandler on_metadata_ = [this](std::string_view message) {
    metadata_ = message;
    return OkStatus();
  };
  size_t magic_ = 0;        // bytes of it that were there
  bool in_list_ = false;    // inside `raw` of the envelope
  bool seen_list_ = false;  // it was entered
  uint64_t list_left_ = 0;  // bytes of the list that are still to come
  std::string header_;      // of a field: its tag, and its length or number
  MessageCollector field_;  // the content of a field
  std::string metadata_;
};

class MessageFrameSplitter {
 public:
  explicit MessageFrameSplitter(MessageHandler on_frame) : on_frame_(std::move(on_frame)) {}

  Status Feed(std::string_view piece);
  Status Finish() const;

 private:
  const MessageHandler on_frame_;
  uint32_t size_ = 0;
  int size_bytes_ = 0;  // of the length that were there
  MessageCollector frame_;
};

}  // namespace flamefleet
