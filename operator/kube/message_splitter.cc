// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/message_splitter.h"

#include <algorithm>
#include <utility>

#include "base/wire.h"

namespace flamefleet {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);
// runtime.Unknown and every list kind.
constexpr uint32_t kUnknownRaw = 2;
constexpr uint32_t kListMetadata = 1;
constexpr uint32_t kListItems = 2;
constexpr int kFrameSizeBytes = 4;

Status Damaged(const char* what) {
  return DataLossError(std::string("split protobuf messages: ") + what);
}

// The front of a field as WireReader needs it, before its bytes have come.
struct FieldHeader {
  bool complete = false;
  uint32_t number = 0;  // 0: nothing that we read has its type
  uint64_t size = 0;    // bytes that follow
};

Result<FieldHeader> ParseHeader(const std::string& header) {
  size_t at = 0;
  // False: there is more to come, or it is no varint.
  const auto varint = [&](uint64_t& value) {
    value = 0;
    for (size_t i = 0; at < header.size() && i < kMaxVarintBytes; ++i) {
      const auto byte = static_cast<uint8_t>(header[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << (kVarintBits * i);
      if (byte < 0x80) return true;
    }
    return false;
  };
  const auto incomplete = [&]() -> Result<FieldHeader> {
    if (header.size() >= 2 * kMaxVarintBytes) return Damaged("a field without end");
    return FieldHeader{};
  };
  uint64_t tag = 0;
  if (!varint(tag)) return incomplete();
  const auto number = static_cast<uint32_t>(tag >> 3);
  if (tag > UINT32_MAX || number == 0) return Damaged("a field without number");
  uint64_t value = 0;
  switch (static_cast<WireType>(tag & 7)) {
    case WireType::kVarint:
      return varint(value) ? FieldHeader{true, 0, 0} : incomplete();
    case WireType::kBytes:
      return varint(value) ? FieldHeader{true, number, value} : incomplete();
    case WireType::kFixed64:
      return FieldHeader{true, 0, sizeof(uint64_t)};
    case WireType::kFixed32:
      return FieldHeader{true, 0, sizeof(uint32_t)};
  }
  return Damaged("a field of no known type");
}

}  // namespace

Status MessageCollector::Begin(uint64_t size, const MessageHandler* handler) {
  if (handler != nullptr && size > kMaxMessageBytes) {
    return ResourceExhaustedError("split protobuf messages: one has " + std::to_string(size) +
                                  " bytes");
  }
  handler_ = handler;
  left_ = size;
  collected_.clear();
  return size == 0 && handler != nullptr ? (*handler)({}) : OkStatus();
}

Status MessageCollector::Take(std::string_view& piece) {
  const size_t size = std::min<uint64_t>(left_, piece.size());
  const std::string_view taken = piece.substr(0, size);
  piece.remove_prefix(size);
  left_ -= size;
  if (handler_ == nullptr) return OkStatus();
  if (left_ == 0 && collected_.empty()) return (*handler_)(taken);  // the usual case: no copy
  collected_ += taken;
  return left_ == 0 ? (*handler_)(collected_) : OkStatus();
}

Status MessageListSplitter::Feed(std::string_view piece) {
  while (!piece.empty()) {
    if (magic_ < kMagic.size()) {
      FF_RETURN_IF_ERROR(TakeMagic(piece));
    } else if (field_.active()) {
      FF_RETURN_IF_ERROR(field_.Take(piece));
    } else if (in_list_ && list_left_ == 0 && header_.empty()) {
      in_list_ = false;
    } else {
      FF_RETURN_IF_ERROR(TakeHeader(piece.front()));
      piece.remove_prefix(1);
    }
  }
  return OkStatus();
}

Status MessageListSplitter::TakeMagic(std::string_view& piece) {
  if (piece.front() != kMagic[magic_]) return Damaged("they do not begin as a list");
  ++magic_;
  piece.remove_prefix(1);
  return OkStatus();
}

Status MessageListSplitter::TakeHeader(char byte) {
  if (in_list_) {
    if (list_left_ == 0) return Damaged("a field over the end of the list");
    --list_left_;
  }
  header_ += byte;
  FF_ASSIGN_OR_RETURN(const FieldHeader field, ParseHeader(header_));
  if (!field.complete) return OkStatus();
  header_.clear();
  if (!in_list_) {
    if (field.number != kUnknownRaw) return field_.Begin(field.size, nullptr);
    if (seen_list_) return Damaged("two lists");
    in_list_ = seen_list_ = true;
    list_left_ = field.size;
    return OkStatus();
  }
  if (field.size > list_left_) return Damaged("a field over the end of the list");
  list_left_ -= field.size;
  const MessageHandler* handler = nullptr;
  if (field.number == kListMetadata) handler = &on_metadata_;
  if (field.number == kListItems) handler = &on_item_;
  return field_.Begin(field.size, handler);
}

Status MessageListSplitter::Finish() const {
  if (!seen_list_ || list_left_ > 0 || field_.active() || !header_.empty()) {
    return Damaged("the list was cut");
  }
  return OkStatus();
}

Status MessageFrameSplitter::Feed(std::string_view piece) {
  while (!piece.empty()) {
    if (frame_.active()) {
      FF_RETURN_IF_ERROR(frame_.Take(piece));
      continue;
    }
    size_ = size_ << 8 | static_cast<uint8_t>(piece.front());
    piece.remove_prefix(1);
    if (++size_bytes_ < kFrameSizeBytes) continue;
    size_bytes_ = 0;
    FF_RETURN_IF_ERROR(frame_.Begin(std::exchange(size_, 0), &on_frame_));
  }
  return OkStatus();
}

Status MessageFrameSplitter::Finish() const {
  if (size_bytes_ > 0 || frame_.active()) return Damaged("the watch was cut inside an event");
  return OkStatus();
}

}  // namespace flamefleet
