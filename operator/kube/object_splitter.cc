// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/object_splitter.h"

#include <array>

namespace flamefleet {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// What the splitter has to look at; everything else is copied as it is.
constexpr std::array<bool, 256> kStructure = [] {
  std::array<bool, 256> table{};
  for (const char c : {'"', '\\', '{', '}', '[', ']'})
    table[static_cast<unsigned char>(c)] = true;
  return table;
}();

size_t PlainLength(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && !kStructure[static_cast<unsigned char>(text[length])])
    ++length;
  return length;
}

// Where the objects we cut out begin: at the top of a stream, inside {"items":[ of a list.
constexpr int kStreamDepth = 0;
constexpr int kItemsDepth = 2;

}  // namespace

ObjectSplitter::ObjectSplitter(Mode mode, ObjectHandler on_object)
    : mode_(mode),
      base_(mode == Mode::kList ? kItemsDepth : kStreamDepth),
      on_object_(std::move(on_object)) {}

Status ObjectSplitter::Feed(std::string_view piece) {
  while (!piece.empty()) {
    // Not between objects, where each byte is checked, and not after a backslash.
    if (depth_ > 0 && !BetweenObjects() && !escaped_) {
      const size_t plain = PlainLength(piece);
      FF_RETURN_IF_ERROR(Append(InObject() ? object_ : envelope_, piece.substr(0, plain)));
      piece.remove_prefix(plain);
      if (piece.empty()) break;
    }
    FF_RETURN_IF_ERROR(Take(piece.front()));
    piece.remove_prefix(1);
  }
  return OkStatus();
}

bool ObjectSplitter::BetweenObjects() const {
  return !in_string_ && depth_ == base_ && (mode_ == Mode::kStream || in_items_);
}

bool ObjectSplitter::InObject() const {
  return depth_ > base_ && (mode_ == Mode::kStream || in_items_);
}

Status ObjectSplitter::Append(std::string& to, std::string_view text) {
  if (text.size() > kMaxObjectBytes - to.size()) {
    return ResourceExhaustedError("split objects: one is larger than " +
                                  std::to_string(kMaxObjectBytes) + " bytes");
  }
  to.append(text);
  return OkStatus();
}

Status ObjectSplitter::Take(char c) {
  const bool between = BetweenObjects();
  const bool list = mode_ == Mode::kList;
  if (IsSpace(c) && (between || depth_ == 0)) return OkStatus();
  if (between && list && c == ',') return OkStatus();
  const bool list_begins = list && depth_ == 0 && !list_ended_;
  const bool items_end = list && between && c == ']';
  if ((between || depth_ == 0) && c != '{' && !items_end) {
    return DataLossError("split objects: expected an object, got '" + std::string(1, c) + "'");
  }
  if (list && depth_ == 0 && !list_begins) {
    return DataLossError("split objects: text after the end of the list");
  }

  const bool object = InObject() || (between && c == '{');
  FF_RETURN_IF_ERROR(Append(object ? object_ : envelope_, std::string_view(&c, 1)));
  EnterOrLeave(c);
  if (object && c == '}' && BetweenObjects()) {
    const Status handled = on_object_(object_);
    object_.clear();
    return handled;
  }
  return OkStatus();
}

void ObjectSplitter::EnterOrLeave(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return;
  }
  switch (c) {
    case '"':
      in_string_ = true;
      break;
    case '[':
      in_items_ = in_items_ || depth_ == 1;
      ++depth_;
      break;
    case '{':
      ++depth_;
      break;
    case ']':
    case '}':
      --depth_;
      if (depth_ == 1) in_items_ = false;
      if (depth_ == 0) list_ended_ = true;
      break;
    default:
      break;
  }
}

Status ObjectSplitter::Finish() const {
  if (depth_ != 0 || (mode_ == Mode::kList && !list_ended_)) {
    return DataLossError("split a stream of objects: it ended inside an object");
  }
  return OkStatus();
}

}  // namespace flamefleet
