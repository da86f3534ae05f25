// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/object_splitter.h"

namespace flamefleet {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Where the objects we cut out begin: at the top of a stream, inside {"items":[ of a list.
constexpr int kStreamDepth = 0;
constexpr int kItemsDepth = 2;

}  // namespace

ObjectSplitter::ObjectSplitter(Mode mode, ObjectHandler on_object)
    : mode_(mode), on_object_(std::move(on_object)) {}

Status ObjectSplitter::Feed(std::string_view piece) {
  for (const char c : piece)
    FF_RETURN_IF_ERROR(Take(c));
  return OkStatus();
}

Status ObjectSplitter::Take(char c) {
  const bool list = mode_ == Mode::kList;
  const int base = list ? kItemsDepth : kStreamDepth;
  const bool between = !in_string_ && depth_ == base && (!list || in_items_);
  if (list && depth_ == 0 && list_ended_ && !IsSpace(c)) {
    return DataLossError("split a list: text after its end");
  }
  if (between && (IsSpace(c) || (list && c == ','))) return OkStatus();
  if (between && c != '{' && !(list && c == ']')) {
    return DataLossError("split a stream of objects: expected an object, got '" +
                         std::string(1, c) + "'");
  }
  if (list && depth_ == 0 && !list_ended_ && !IsSpace(c) && c != '{') {
    return DataLossError("split a list: expected an object, got '" + std::string(1, c) + "'");
  }

  const bool in_object = !list || (in_items_ && (depth_ > base || c == '{'));
  std::string& into = in_object ? object_ : envelope_;
  if (into.size() >= kMaxObjectBytes) {
    return ResourceExhaustedError("split a stream of objects: an object is larger than " +
                                  std::to_string(kMaxObjectBytes) + " bytes");
  }
  into.push_back(c);
  EnterOrLeave(c);

  if (in_object && depth_ == base && c == '}' && !in_string_) {
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
