// SPDX-License-Identifier: Apache-2.0
#include "base/flags.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/clock.h"

namespace flamefleet {
namespace {

// "20s", "1m30s", "250ms": the shortest form that ParseDuration reads back.
std::string DurationText(std::chrono::nanoseconds value) {
  const int64_t millis = value.count() / kNanosPerMilli;
  if (millis % 1000 != 0) return std::to_string(millis) + "ms";
  const int64_t seconds = millis / 1000;
  std::string text;
  if (seconds >= 3600) text += std::to_string(seconds / 3600) + "h";
  if (seconds / 60 % 60 != 0) text += std::to_string(seconds / 60 % 60) + "m";
  if (seconds % 60 != 0) text += std::to_string(seconds % 60) + "s";
  return text;
}

}  // namespace

Flags::Flags(std::string usage, std::string summary)
    : usage_(std::move(usage)), summary_(std::move(summary)) {}

void Flags::Add(Flag flag) {
  FF_CHECK(Find(flag.name) == nullptr);
  flags_.push_back(std::move(flag));
}

Flags::Flag* Flags::Find(const std::string& name) {
  const auto found =
      std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

void Flags::Short(char letter, const std::string& name) {
  Flag* const flag = Find(name);
  FF_CHECK(flag != nullptr);
  flag->letter = letter;
}

// The flag that "--name", "--name=value" or "-n" begins; nullptr: none.
Flags::Flag* Flags::FindArgument(const std::string& argument) {
  if (argument.starts_with("--")) return Find(argument.substr(2, argument.find('=') - 2));
  const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) {
    return flag.letter != 0 && argument == std::string{'-', flag.letter};
  });
  return found == flags_.end() ? nullptr : &*found;
}

void Flags::Text(const std::string& name, const std::string& placeholder, const std::string& help,
                 std::string* value, const std::string& environment) {
  Add({.name = name,
       .placeholder = placeholder,
       .help = help,
       .default_text = *value,
       .environment = environment,
       .set = [value](const std::string& text) {
         *value = text;
         return OkStatus();
       }});
}

void Flags::TextList(const std::string& name, const std::string& placeholder,
                     const std::string& help, std::vector<std::string>* values) {
  Add({.name = name,
       .placeholder = placeholder,
       .help = help + "; may be repeated",
       .set = [values](const std::string& text) {
         values->push_back(text);
         return OkStatus();
       }});
}

void Flags::Number(const std::string& name, const std::string& placeholder, const std::string& help,
                   int64_t min, int64_t max, int64_t* value, const std::string& environment) {
  Add({.name = name,
       .placeholder = placeholder,
       .help = help,
       .default_text = std::to_string(*value),
       .environment = environment,
       .set = [value, min, max](const std::string& text) -> Status {
         int64_t number = 0;
         const char* const last = text.data() + text.size();
         const auto [end, error] = std::from_chars(text.data(), last, number);
         if (error != std::errc() || end != last || number < min || number > max) {
           return InvalidArgumentError("want a whole number from " + std::to_string(min) + " to " +
                                       std::to_string(max));
         }
         *value = number;
         return OkStatus();
       }});
}

void Flags::Duration(const std::string& name, const std::string& help,
                     std::chrono::nanoseconds* value, const std::string& environment) {
  Add({.name = name,
       .placeholder = "DURATION",
       .help = help,
       .default_text = DurationText(*value),
       .environment = environment,
       .set = [value](const std::string& text) -> Status {
         const Result<int64_t> nanos = ParseDuration(text);
         if (!nanos.ok()) return InvalidArgumentError("want a duration such as 20s or 1h30m");
         *value = std::chrono::nanoseconds(*nanos);
         return OkStatus();
       }});
}

void Flags::Switch(const std::string& name, const std::string& help, bool* value) {
  Add({.name = name, .help = help, .set = [value](const std::string& text) -> Status {
         if (text != "true" && text != "false") return InvalidArgumentError("want true or false");
         *value = text == "true";
         return OkStatus();
       }});
}

Status Flags::Set(Flag& flag, const std::string& source, const std::string& text) {
  flag.given = true;
  return Annotate(flag.set(text), source + " '" + text + "'");
}

Status Flags::Parse(int count, const char* const* arguments) {
  for (int i = 0; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      help_wanted_ = true;
      return OkStatus();
    }
    const bool is_flag = argument.size() > 1 && argument.starts_with('-');
    if (!is_flag && arguments_ != nullptr) {
      arguments_->push_back(argument);
      continue;
    }
    if (!is_flag || argument == "--") {
      return InvalidArgumentError("unexpected argument '" + argument + "'; see --help");
    }
    Flag* const flag = FindArgument(argument);
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    if (flag == nullptr) {
      return InvalidArgumentError("unknown flag '" + argument.substr(0, equals) + "'; see --help");
    }
    std::string text = "true";
    if (equals != std::string::npos) {
      text = argument.substr(equals + 1);
    } else if (!flag->placeholder.empty()) {
      if (++i == count) {
        return InvalidArgumentError("--" + flag->name + " needs a value: " + flag->placeholder);
      }
      text = arguments[i];
    }
    FF_RETURN_IF_ERROR(Set(*flag, "--" + flag->name, text));
  }
  for (Flag& flag : flags_) {
    if (flag.given || flag.environment.empty()) continue;
    const char* const text = std::getenv(flag.environment.c_str());
    if (text == nullptr || *text == '\0') continue;
    FF_RETURN_IF_ERROR(Set(flag, "environment variable " + flag.environment, text));
  }
  return OkStatus();
}

std::string Flags::Help() const {
  std::string out = "Usage: " + usage_ + "\n\n" + summary_ + "\n";
  if (!flags_.empty()) out += "\n";
  for (const Flag& flag : flags_) {
    out += "  --" + flag.name + (flag.letter == 0 ? "" : std::string(", -") + flag.letter) +
           (flag.placeholder.empty() ? "" : " " + flag.placeholder) + "\n";
    out += "        " + flag.help;
    if (!flag.default_text.empty()) out += " (default " + flag.default_text + ")";
    if (!flag.environment.empty()) out += " [$" + flag.environment + "]";
    out += "\n";
  }
  return out;
}

}  // namespace flamefleet
