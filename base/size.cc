// SPDX-License-Identifier: Apache-2.0
#include "base/size.h"

#include <charconv>
#include <string_view>

namespace flamefleet {

Result<int64_t> ParseSize(const std::string& text, int64_t min) {
  constexpr int64_t kMaxBytes = int64_t{1} << 50;
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  int shift = -1;
  if (suffix.empty()) shift = 0;
  if (suffix == "Ki") shift = 10;
  if (suffix == "Mi") shift = 20;
  if (suffix == "Gi") shift = 30;
  if (suffix == "Ti") shift = 40;
  if (error == std::errc() && shift >= 0 && number > 0 && number <= (kMaxBytes >> shift) &&
      number << shift >= min) {
    return number << shift;
  }
  return InvalidArgumentError("size '" + text +
                              "': want a number with Ki, Mi, Gi or Ti, at least " +
                              std::to_string(min) + " bytes");
}

}  // namespace flamefleet
