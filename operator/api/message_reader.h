// SPDX-License-Identifier: Apache-2.0
// MessageReader: reads typed fields out of a protobuf message, as ObjectReader does out of JSON.
// Only the fields that are asked for are looked at; all others are stepped over.
//
// Thread:  one. Lifetime: the message and the parent reader outlive a reader.
// Bounds:  nothing is copied but what is read; the depth is that of the decoder.
// Errors:  as ObjectReader: the first thing that is wrong is remembered with its path, and every
//          later read does nothing. Wrong are: damaged bytes, another wire type, a number out of
//          range, and text that is not UTF-8 (no agent could be told of it).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "operator/api/field.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

class MessageReader {
 public:
  // `message` is the whole object; `what` begins the error messages ("Pod").
  MessageReader(std::string_view message, std::string_view what)
      : message_(message), step_(what), error_(&own_error_) {
    CheckBytes();
  }
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;

  const Status& status() const { return *error_; }

  void String(Field field, std::string& out) const {
    std::string_view text;
    if (FindText(field, text)) out = text;
  }

  void Bool(Field field, bool& out) const {
    uint64_t value = 0;
    if (FindNumber(field, value)) out = value != 0;
  }

  template <typename Int>
  void Integer(Field field, Int& out) const {
    uint64_t value = 0;
    if (!FindNumber(field, value)) return;
    const auto number = static_cast<int64_t>(value);
    if (number < std::numeric_limits<Int>::min() || number > std::numeric_limits<Int>::max()) {
      return Fail(field, "integer in range");
    }
    out = static_cast<Int>(number);
  }

  // A metav1.Time, as wall nanoseconds in whole seconds.
  void Time(Field field, int64_t& out) const {
    Object(field, [&](const MessageReader& time) {
      constexpr int64_t kMaxSeconds = std::numeric_limits<int64_t>::max() / kNanosPerSecond;
      int64_t seconds = 0;
      time.Integer({"seconds", 1}, seconds);
      if (seconds < 0 || seconds > kMaxSeconds) return time.Fail({}, "time in range");
      out = seconds * kNanosPerSecond;
    });
  }

  // Only the keys that `wanted` accepts.
  template <typename Predicate>
  void Map(Field field, StringMap& out, Predicate wanted) const {
    Objects(field, [&](const MessageReader& entry) {
      std::string_view key;
      std::string_view value;
      if (!entry.FindText({"key", 1}, key) || !wanted(key)) return;
      entry.FindText({"value", 2}, value);
      if (error_->ok()) out.emplace(key, value);
    });
  }
  void Map(Field field, StringMap& out) const {
    Map(field, out, [](std::string_view) { return true; });
  }

  // Calls read(reader) when the message is there.
  template <typename Read>
  void Object(Field field, Read read) const {
    WireField found;
    if (!Find(field, WireType::kBytes, "message", found)) return;
    const MessageReader child(found.bytes, *this, field.name, -1);
    read(child);
  }

  // Calls read(reader) for each message of the list.
  template <typename Read>
  void Objects(Field field, Read read) const {
    int64_t index = 0;
    WireReader reader(message_);
    for (WireField next; error_->ok() && reader.Next(&next);) {
      if (next.number != field.number) continue;
      if (next.type != WireType::kBytes) return Fail(field, "list of messages");
      const MessageReader child(next.bytes, *this, field.name, index++);
      if (error_->ok()) read(child);
    }
  }

  bool Has(Field field) const {
    WireReader reader(message_);
    for (WireField next; error_->ok() && reader.Next(&next);) {
      if (next.number == field.number) return true;
    }
    return false;
  }

 private:
  MessageReader(std::string_view message, const MessageReader& parent, std::string_view step,
                int64_t index)
      : message_(message), parent_(&parent), step_(step), index_(index), error_(parent.error_) {
    CheckBytes();
  }

  // So that a walk over the fields ends at the end of the message only.
  void CheckBytes() const {
    WireReader reader(message_);
    for (WireField field; reader.Next(&field);) {
    }
    if (reader.damaged()) Fail({}, "a protobuf message");
  }

  // The last one of a field counts.
  bool Find(Field field, WireType type, const char* want, WireField& found) const {
    if (!error_->ok()) return false;
    bool is_there = false;
    WireReader reader(message_);
    for (WireField next; reader.Next(&next);) {
      if (next.number != field.number) continue;
      is_there = true;
      found = next;
    }
    if (is_there && found.type != type) {
      Fail(field, want);
      return false;
    }
    return is_there;
  }

  bool FindText(Field field, std::string_view& text) const {
    WireField found;
    if (!Find(field, WireType::kBytes, "string", found)) return false;
    if (!IsUtf8(found.bytes)) {
      Fail(field, "UTF-8 text");
      return false;
    }
    text = found.bytes;
    return true;
  }

  bool FindNumber(Field field, uint64_t& number) const {
    WireField found;
    if (!Find(field, WireType::kVarint, "number", found)) return false;
    number = found.varint;
    return true;
  }

  void Fail(Field field, const std::string& want) const {
    if (!error_->ok()) return;
    std::string path = Path();
    if (field.number != 0) path.append(1, '.').append(field.name);
    *error_ = InvalidArgumentError("decode " + path + ": want " + want);
  }

  std::string Path() const {
    std::string path = parent_ == nullptr ? std::string() : parent_->Path() + ".";
    path.append(step_);
    if (index_ >= 0) path.append("[").append(std::to_string(index_)).append("]");
    return path;
  }

  const std::string_view message_;
  const MessageReader* const parent_ = nullptr;
  const std::string_view step_;
  const int64_t index_ = -1;
  Status own_error_;
  Status* const error_;
};

}  // namespace flamefleet::api
