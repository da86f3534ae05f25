// SPDX-License-Identifier: Apache-2.0
#include "operator/render/yaml_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace flamefleet::render {
namespace {

using nlohmann::json;

constexpr const char* kMergeKey = "<<";

std::string Place(int line, int column) {
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Makes a JSON value of the parser's events. After an error it ignores what comes.
class JsonBuilder : public YAML::EventHandler {
 public:
  // The document begins in the line after `lines_before` of the text.
  explicit JsonBuilder(int lines_before) : lines_before_(lines_before) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, anchor, {json(nullptr), kValueCost});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (ExpectsKey()) {
      plain_key_ = tag == "?";
      Add(mark, anchor, {json(text), kValueCost + text.size()});
      return;
    }
    // Quoted ("!"), or said to be a string; other tags leave the choice to the text.
    const bool is_text = tag == "!" || tag.ends_with(":str");
    Add(mark, anchor, {is_text ? json(text) : ResolvePlainScalar(text), kValueCost + text.size()});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return Fail(mark, "an alias of what it is part of");
    if (found->second.cost > kMaxDocumentCost - cost_) return FailSize(mark);
    Add(mark, 0, found->second);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, anchor, json::object());
  }
  void OnMapEnd() override { Close(); }

  Result<json> Take() {
    if (error_) return InvalidArgumentError(*error_);
    return std::move(root_.value);
  }

 private:
  struct Costed {
    json value;
    size_t cost = 0;
  };
  struct Frame {
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    Costed built;
    std::optional<std::string> key;  // of a map: whose value comes next
    bool merge = false;              // that key is a merge key
    std::vector<json> merged;        // their values; the map's own keys win
  };

  bool ExpectsKey() const {
    return !frames_.empty() && frames_.back().built.value.is_object() && !frames_.back().key;
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, json empty) {
    if (ExpectsKey()) return Fail(mark, "a key that is not text");
    if (frames_.size() >= kMaxDepth)
      return Fail(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    if (error_) return;
    frames_.push_back({.mark = mark, .anchor = anchor, .built = {std::move(empty), kValueCost}});
    cost_ += kValueCost;
  }

  void Close() {
    if (error_) return;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    for (const json& merged : frame.merged)
      frame.built.value.insert(merged.begin(), merged.end());  // what is there already stays
    cost_ -= frame.built.cost;                                 // Add counts it again
    Add(frame.mark, frame.anchor, std::move(frame.built));
  }

  // A complete value: a key, or what belongs to the innermost open one.
  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, Costed item) {
    if (error_) return;
    cost_ += anchor == 0 ? item.cost : 2 * item.cost;  // an anchor keeps a copy
    if (cost_ > kMaxDocumentCost) return FailSize(mark);
    if (anchor != 0) anchors_[anchor] = item;
    if (frames_.empty()) {
      root_ = std::move(item);
      return;
    }
    Frame& frame = frames_.back();
    frame.built.cost += item.cost;
    if (frame.built.value.is_array()) {
      frame.built.value.push_back(std::move(item.value));
    } else if (!frame.key) {
      AddKey(mark, frame, item.value);
    } else if (frame.merge) {
      AddMerged(mark, frame, std::move(item.value));
    } else {
      frame.built.value[*std::exchange(frame.key, {})] = std::move(item.value);
    }
  }

  void AddKey(const YAML::Mark& mark, Frame& frame, const json& key) {
    if (!key.is_string()) return Fail(mark, "a key that is not text");
    frame.key = key.get<std::string>();
    frame.merge = *frame.key == kMergeKey && plain_key_;
    if (!frame.merge && frame.built.value.contains(*frame.key))
      Fail(mark, "key \"" + *frame.key + "\" is there twice");
  }

  void AddMerged(const YAML::Mark& mark, Frame& frame, json value) {
    frame.key.reset();
    std::vector<json> maps;
    if (value.is_array()) {
      maps.assign(value.begin(), value.end());
    } else {
      maps.push_back(std::move(value));
    }
    for (json& map : maps) {
      if (!map.is_object())
        return Fail(mark, "the value of a merge key is neither map nor list of maps");
      frame.merged.push_back(std::move(map));
    }
  }

  void Fail(const YAML::Mark& mark, const std::string& cause) {
    if (!error_) error_ = Place(lines_before_ + mark.line + 1, mark.column + 1) + ": " + cause;
  }
  void FailSize(const YAML::Mark& mark) {
    Fail(mark, "the document is larger than " + std::to_string(kMaxDocumentCost >> 20) +
                   " MiB once its aliases are resolved");
  }

  const int lines_before_;
  std::vector<Frame> frames_;
  Costed root_;
  std::map<YAML::anchor_t, Costed> anchors_;
  size_t cost_ = 0;
  bool plain_key_ = true;
  std::optional<std::string> error_;
};

// nlohmann's parser, with its depth bounded.
std::optional<Result<json>> ParseJson(const std::string& text) {
  bool too_deep = false;
  json value = json::parse(
      text,
      [&](int depth, json::parse_event_t /*event*/, json& /*parsed*/) {
        too_deep = too_deep || depth > static_cast<int>(kMaxDepth);
        return depth <= static_cast<int>(kMaxDepth);
      },
      /*allow_exceptions=*/false);
  if (value.is_discarded() && !too_deep) return std::nullopt;
  if (too_deep)
    return InvalidArgumentError("nested deeper than " + std::to_string(kMaxDepth) + " levels");
  return value;
}

// Where the next line that begins with the document marker "---" begins; the end if there is none.
size_t FindMarker(const std::string& text, size_t from) {
  for (size_t line = from; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    const std::string_view content(text.data() + line, end - line);
    if (line != from && content.starts_with("---") &&
        (content.size() == 3 || content[3] == ' ' || content[3] == '\t' || content[3] == '\r'))
      return line;
    line = end + 1;
  }
  return text.size();
}

bool HasContent(std::string_view text) {
  if (text.starts_with("---")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t first = line.find_first_not_of(" \t\r");
    const bool directive = line.starts_with('%');
    if (first != std::string_view::npos && line[first] != '#' && !directive) return true;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

// All documents of the text: "..." ends one as well.
std::vector<Result<json>> ParseYaml(const std::string& text, int lines_before) {
  std::vector<Result<json>> documents;
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (true) {
      JsonBuilder builder(lines_before);
      if (!parser.HandleNextDocument(builder)) return documents;
      documents.push_back(builder.Take());
    }
  } catch (const YAML::Exception& error) {
    documents.emplace_back(InvalidArgumentError(
        Place(lines_before + error.mark.line + 1, error.mark.column + 1) + ": " + error.msg));
  }
  return documents;
}

}  // namespace

void ReadYaml(const std::string& text,
              const std::function<void(int number, Result<json> document)>& take) {
  if (!IsUtf8(text)) return take(1, InvalidArgumentError("the text is not UTF-8"));
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    // What looks like JSON is usually that; a flow map of YAML begins alike.
    if (std::optional<Result<json>> value = ParseJson(text)) return take(1, *std::move(value));
  }
  int number = 0;
  int lines_before = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = FindMarker(text, begin);
    const std::string chunk = text.substr(begin, end - begin);
    const bool is_comment = number == 0 && !chunk.starts_with("---") && !HasContent(chunk);
    if (!is_comment) ++number;
    if (HasContent(chunk)) {
      const std::vector<Result<json>> documents = ParseYaml(chunk, lines_before);
      for (const Result<json>& document : documents)
        take(&document == &documents.front() ? number : ++number, document);
    }
    lines_before += static_cast<int>(std::ranges::count(chunk, '\n'));
    begin = end;
  }
}

}  // namespace flamefleet::render
