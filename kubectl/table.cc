// SPDX-License-Identifier: Apache-2.0
#include "kubectl/table.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace flamefleet::kubectl {
namespace {

constexpr size_t kGap = 3;  // spaces between columns

// Characters of UTF-8, not bytes.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

Table::Table(std::vector<std::string> header) {
  rows_.push_back(std::move(header));
}

void Table::Add(std::vector<std::string> row) {
  FF_CHECK(row.size() == rows_.front().size());
  for (std::string& cell : row)
    cell = cell.empty() ? "<none>" : OneLine(std::move(cell));
  rows_.push_back(std::move(row));
}

std::string Table::Text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], WidthOf(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - WidthOf(row[i]) + kGap, ' ');
    }
    text += "\n";
  }
  return text;
}

}  // namespace flamefleet::kubectl
