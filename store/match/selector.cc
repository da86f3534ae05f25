// SPDX-License-Identifier: Apache-2.0
#include "store/match/selector.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace flamefleet::store {
namespace {

constexpr char kDefaultProfileName[] = "process_cpu";
constexpr int64_t kMaxRegexBytes = 1 << 20;  // of one compiled expression

bool IsLabelStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsLabelPart(char c) {
  return IsLabelStart(c) || (c >= '0' && c <= '9') || c == '.';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Selector> Parse() {
    Selector selector;
    SkipSpace();
    const bool has_type = !AtEnd() && Peek() != '{';
    if (has_type) FF_RETURN_IF_ERROR(ParseType(&selector));
    SkipSpace();
    if (TryTake('{')) FF_RETURN_IF_ERROR(ParseMatchers(&selector));
    SkipSpace();
    if (!AtEnd()) return Error("unexpected text after the selector");
    const bool has_name =
        std::any_of(selector.matchers.begin(), selector.matchers.end(),
                    [](const Matcher& matcher) { return matcher.label == kProfileName; });
    if (!has_name) {
      selector.matchers.push_back(
          {kProfileName, Matcher::Op::kEqual, kDefaultProfileName, nullptr});
    }
    return selector;
  }

 private:
  bool AtEnd() const { return position_ == text_.size(); }
  char Peek() const { return text_[position_]; }
  bool TryTake(char c) {
    if (AtEnd() || Peek() != c) return false;
    ++position_;
    return true;
  }
  void SkipSpace() {
    while (!AtEnd() && (Peek() == ' ' || Peek() == '\t' || Peek() == '\n'))
      ++position_;
  }

  Status Error(const std::string& what) const {
    return InvalidArgumentError("query, character " + std::to_string(position_ + 1) + ": " + what);
  }

  Status ParseType(Selector* selector) {
    const size_t begin = position_;
    while (!AtEnd() && Peek() != '{' && Peek() != ' ')
      ++position_;
    std::string_view rest = text_.substr(begin, position_ - begin);
    std::vector<std::string> parts;
    for (;;) {
      const size_t colon = rest.find(':');
      parts.emplace_back(rest.substr(0, colon));
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
    if (parts[0].empty() || parts.size() > 5 || parts.size() == 4) {
      return Error(
          "a profile type is name, name:sample, name:sample:unit or "
          "name:sample:unit:period:unit");
    }
    parts.resize(5);
    selector->matchers.push_back({kProfileName, Matcher::Op::kEqual, parts[0], nullptr});
    selector->sample_type = {parts[1], parts[2], parts[3], parts[4]};
    return OkStatus();
  }

  Status ParseMatchers(Selector* selector) {
    for (;;) {
      SkipSpace();
      if (TryTake('}')) return OkStatus();
      if (selector->matchers.size() >= kMaxMatchers) {
        return Error("more than " + std::to_string(kMaxMatchers) + " matchers");
      }
      FF_RETURN_IF_ERROR(ParseMatcher(&selector->matchers.emplace_back()));
      SkipSpace();
      if (TryTake(',')) continue;
      if (TryTake('}')) return OkStatus();
      return Error("want , or }");
    }
  }

  Status ParseMatcher(Matcher* matcher) {
    FF_RETURN_IF_ERROR(ParseLabel(&matcher->label));
    SkipSpace();
    FF_RETURN_IF_ERROR(ParseOperator(&matcher->op));
    SkipSpace();
    FF_RETURN_IF_ERROR(ParseText(&matcher->value));
    if (matcher->op == Matcher::Op::kEqual || matcher->op == Matcher::Op::kNotEqual) {
      return OkStatus();
    }
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(true);
    options.set_max_mem(kMaxRegexBytes);
    auto regex = std::make_shared<re2::RE2>(matcher->value, options);
    if (!regex->ok()) return Error("regular expression: " + regex->error());
    matcher->regex = std::move(regex);
    return OkStatus();
  }

  Status ParseLabel(std::string* label) {
    if (!AtEnd() && (Peek() == '"' || Peek() == '\'' || Peek() == '`')) return ParseText(label);
    const size_t begin = position_;
    if (!AtEnd() && IsLabelStart(Peek())) {
      while (!AtEnd() && IsLabelPart(Peek()))
        ++position_;
    }
    if (position_ == begin) return Error("want a label name");
    *label = text_.substr(begin, position_ - begin);
    return OkStatus();
  }

  Status ParseOperator(Matcher::Op* op) {
    struct Spelling {
      std::string_view text;
      Matcher::Op op;
    };
    static constexpr std::array<Spelling, 4> kSpellings = {{{"=~", Matcher::Op::kMatch},
                                                            {"!~", Matcher::Op::kNoMatch},
                                                            {"!=", Matcher::Op::kNotEqual},
                                                            {"=", Matcher::Op::kEqual}}};
    for (const Spelling& spelling : kSpellings) {
      if (text_.substr(position_, spelling.text.size()) != spelling.text) continue;
      position_ += spelling.text.size();
      *op = spelling.op;
      return OkStatus();
    }
    return Error("want =, !=, =~ or !~");
  }

  Status ParseText(std::string* value) {
    const char quote = AtEnd() ? '\0' : Peek();
    if (quote != '"' && quote != '\'' && quote != '`') return Error("want a quoted text");
    ++position_;
    while (!AtEnd() && Peek() != quote) {
      char c = Peek();
      if (c == '\\' && quote != '`') {
        ++position_;
        if (AtEnd()) break;
        FF_RETURN_IF_ERROR(Unescape(Peek(), &c));
      }
      *value += c;
      ++position_;
    }
    if (!TryTake(quote)) return Error("the text has no closing quote");
    return OkStatus();
  }

  Status Unescape(char escaped, char* c) const {
    switch (escaped) {
      case '\\':
      case '"':
      case '\'':
        *c = escaped;
        return OkStatus();
      case 'n':
        *c = '\n';
        return OkStatus();
      case 'r':
        *c = '\r';
        return OkStatus();
      case 't':
        *c = '\t';
        return OkStatus();
      default:
        return Error(
            "unknown escape; in a regular expression write \\\\ for one backslash, or quote it "
            "with `");
    }
  }

  const std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

bool Matcher::Matches(const Labels& labels) const {
  const auto it = labels.find(label);
  static const std::string kAbsent;
  const std::string& actual = it == labels.end() ? kAbsent : it->second;
  switch (op) {
    case Op::kEqual:
      return actual == value;
    case Op::kNotEqual:
      return actual != value;
    case Op::kMatch:
      return re2::RE2::FullMatch(actual, *regex);
    case Op::kNoMatch:
      return !re2::RE2::FullMatch(actual, *regex);
  }
  return false;
}

bool SampleTypeChoice::Matches(const SampleType& actual) const {
  const auto fits = [](const std::string& wanted, const std::string& text) {
    return wanted.empty() || wanted == text;
  };
  return fits(type, actual.type) && fits(unit, actual.unit) &&
         fits(period_type, actual.period_type) && fits(period_unit, actual.period_unit);
}

bool Selector::Matches(const Labels& labels) const {
  return std::all_of(matchers.begin(), matchers.end(),
                     [&](const Matcher& matcher) { return matcher.Matches(labels); });
}

Result<Selector> ParseSelector(std::string_view text) {
  if (text.size() > kMaxSelectorBytes) {
    return InvalidArgumentError("query: longer than " + std::to_string(kMaxSelectorBytes) +
                                " bytes");
  }
  if (!IsUtf8(text)) return InvalidArgumentError("query: not UTF-8");
  return Parser(text).Parse();
}

}  // namespace flamefleet::store
