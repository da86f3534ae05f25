// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwind_table.h"

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>
#include <utility>

namespace flamefleet::agent {
namespace {

constexpr uint64_t kPageBytes = 1 << FF_UNWIND_PAGE_BITS;
constexpr uint16_t kUnknownRule = 0;

uint64_t Pack(uint64_t low, uint64_t high) {
  return low | (high << 32);
}

uint32_t Low(uint64_t word) {
  return static_cast<uint32_t>(word);
}

uint32_t High(uint64_t word) {
  return static_cast<uint32_t>(word >> 32);
}

// The distinct rules of a file by number.
class RuleSet {
 public:
  RuleSet() { Number({}); }

  uint16_t Number(const ff_unwind_rule& rule) {
    const auto word = std::bit_cast<uint64_t>(rule);
    if (const auto found = numbers_.find(word); found != numbers_.end()) return found->second;
    if (words_.size() == kMaxUnwindRules) return kUnknownRule;
    const auto number = static_cast<uint16_t>(words_.size());
    numbers_.emplace(word, number);
    words_.push_back(word);
    return number;
  }

  const std::vector<uint64_t>& words() const { return words_; }

 private:
  std::unordered_map<uint64_t, uint16_t> numbers_;
  std::vector<uint64_t> words_;
};

// What the sections say, in the order of addresses.
struct Functions {
  struct Row {
    uint32_t offset = 0;  // from the start of the function
    uint16_t rule = 0;
  };
  struct Function {
    uint64_t start = 0;
    uint64_t end = 0;
    uint32_t first_row = 0;
    uint32_t row_count = 0;
  };

  std::vector<Function> functions;
  std::vector<Row> rows;
  RuleSet rules;
};

Result<Functions> ReadFunctions(std::span<const std::byte> eh_frame, uint64_t address,
                                std::span<const std::byte> debug_frame,
                                const UnwindTable::Reader& more) {
  Functions all;
  bool too_many = false;
  const auto visit = [&](uint64_t start, uint64_t end, std::span<const CfiRow> rows) {
    too_many = too_many || rows.size() > kMaxUnwindRows - all.rows.size();
    if (too_many || end - start > UINT32_MAX) return;
    all.functions.push_back({.start = start,
                             .end = end,
                             .first_row = static_cast<uint32_t>(all.rows.size()),
                             .row_count = static_cast<uint32_t>(rows.size())});
    for (const CfiRow& row : rows)
      all.rows.push_back({static_cast<uint32_t>(row.pc - start), all.rules.Number(row.rule)});
  };
  FF_RETURN_IF_ERROR(ReadEhFrame(eh_frame, address, visit));
  // What is damaged there takes nothing from what .eh_frame says.
  Status rest = ReadDebugFrame(debug_frame, visit);
  if (rest.ok() && more) rest = more(visit);
  if (!rest.ok() && all.functions.empty()) return rest;
  if (too_many) {
    return ResourceExhaustedError("build unwind table: over " + std::to_string(kMaxUnwindRows) +
                                  " rows");
  }
  // Of two for one place the first stays the first.
  std::ranges::stable_sort(all.functions, {}, &Functions::Function::start);
  return all;
}

// Gets rules in the order of addresses; joins equal neighbours and starts each page anew.
class PageWriter {
 public:
  explicit PageWriter(uint64_t first_address) : first_page_(first_address / kPageBytes) {}

  void Add(uint64_t address, uint16_t rule) {
    if (rule == rule_) return;
    const uint64_t page = address / kPageBytes;
    while (first_page_ + pages_.size() <= page) {
      pages_.push_back(Pack(rows_.size(), 0));
      if ((first_page_ + pages_.size() - 1) * kPageBytes != address) AddRow(0, rule_);
    }
    AddRow(static_cast<uint16_t>(address % kPageBytes), rule);
    rule_ = rule;
  }

  uint64_t first_page() const { return first_page_; }
  const std::vector<uint64_t>& pages() const { return pages_; }
  const std::vector<uint32_t>& rows() const { return rows_; }

 private:
  void AddRow(uint16_t address, uint16_t rule) {
    rows_.push_back(address | uint32_t{rule} << 16);
    pages_.back() += Pack(0, 1);
  }

  const uint64_t first_page_;
  uint16_t rule_ = kUnknownRule;  // the last one added
  std::vector<uint64_t> pages_;
  std::vector<uint32_t> rows_;
};

}  // namespace

Result<UnwindTable> UnwindTable::Build(std::span<const std::byte> eh_frame, uint64_t address,
                                       std::span<const std::byte> debug_frame, const Reader& more) {
  FF_ASSIGN_OR_RETURN(const Functions all, ReadFunctions(eh_frame, address, debug_frame, more));
  if (all.functions.empty()) return NotFoundError("build unwind table: no function has rules");
  uint64_t last = 0;
  for (const Functions::Function& function : all.functions)
    last = std::max(last, function.end);
  PageWriter writer(all.functions.front().start);
  if (last / kPageBytes - writer.first_page() >= kMaxUnwindPages)
    return ResourceExhaustedError("build unwind table: functions over 1 GiB of addresses");

  uint64_t end = 0;  // of the functions so far
  for (const Functions::Function& function : all.functions) {
    if (function.start < end) continue;  // two entries for one place: the first counts
    if (function.start > end) writer.Add(end, kUnknownRule);
    for (uint32_t i = 0; i < function.row_count; ++i) {
      const Functions::Row& row = all.rows[function.first_row + i];
      writer.Add(function.start + row.offset, row.rule);
    }
    end = function.end;
  }
  writer.Add(end, kUnknownRule);
  if (writer.rows().empty()) return NotFoundError("build unwind table: no rule can be used");

  UnwindTable table;
  table.row_count_ = writer.rows().size();
  table.rule_count_ = all.rules.words().size();
  std::vector<uint64_t>& words = table.words_;
  words = {writer.first_page(), Pack(writer.pages().size(), table.rule_count_)};
  words.reserve(FF_UNWIND_HEADER_WORDS + writer.pages().size() + table.rule_count_ +
                (writer.rows().size() + 1) / 2);
  words.insert(words.end(), writer.pages().begin(), writer.pages().end());
  words.insert(words.end(), all.rules.words().begin(), all.rules.words().end());
  for (size_t i = 0; i < writer.rows().size(); i += 2) {
    const bool has_second = i + 1 < writer.rows().size();
    words.push_back(Pack(writer.rows()[i], has_second ? writer.rows()[i + 1] : 0));
  }
  return table;
}

Result<UnwindTable> UnwindTable::FromWords(std::vector<uint64_t> words) {
  const Status wrong = InvalidArgumentError("take unwind table: it contradicts itself");
  if (words.size() < FF_UNWIND_HEADER_WORDS) return wrong;
  const uint64_t pages = Low(words[1]);
  const uint64_t rules = High(words[1]);
  const uint64_t before_rows = FF_UNWIND_HEADER_WORDS + pages + rules;
  if (rules == 0 || rules > kMaxUnwindRules || pages > kMaxUnwindPages ||
      before_rows > words.size() || words.size() - before_rows > kMaxUnwindRows / 2)
    return wrong;
  const uint64_t rows = 2 * (words.size() - before_rows);
  for (uint64_t i = FF_UNWIND_HEADER_WORDS; i < FF_UNWIND_HEADER_WORDS + pages; ++i) {
    const uint64_t count = High(words[i]);
    if (count == 0 || Low(words[i]) + count > rows) return wrong;
  }
  for (uint64_t i = before_rows; i < words.size(); ++i) {
    if (Low(words[i]) >> 16 >= rules || High(words[i]) >> 16 >= rules) return wrong;
  }
  UnwindTable table;
  table.words_ = std::move(words);
  table.row_count_ = rows;
  table.rule_count_ = rules;
  return table;
}

ff_unwind_rule UnwindTable::Find(uint64_t address) const {
  const uint64_t page = address / kPageBytes - words_[0];
  const uint32_t pages = Low(words_[1]);
  if (page >= pages) return {};
  const size_t rules = FF_UNWIND_HEADER_WORDS + pages;
  const size_t rows = rules + High(words_[1]);
  const auto row_at = [this, rows](uint32_t row) {
    const uint64_t word = words_[rows + row / 2];
    return row % 2 == 0 ? Low(word) : High(word);
  };
  const uint64_t index = words_[FF_UNWIND_HEADER_WORDS + page];
  uint32_t first = Low(index);
  uint32_t count = High(index);
  while (count > 1) {
    const uint32_t half = count / 2;
    const bool in_second = (row_at(first + half) & 0xffff) <= address % kPageBytes;
    if (in_second) first += half;
    count = in_second ? count - half : half;
  }
  return std::bit_cast<ff_unwind_rule>(words_[rules + (row_at(first) >> 16)]);
}

}  // namespace flamefleet::agent
