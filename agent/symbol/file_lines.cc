// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/file_lines.h"

#include <algorithm>

#include "agent/symbol/demangle.h"
#include "agent/symbol/line_request.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace flamefleet::agent {
namespace {

// Less is not worth a request.
constexpr std::chrono::milliseconds kMinBudget{20};

LineOutcome OutcomeOf(LineProblem problem) {
  switch (problem) {
    case LineProblem::kSplit:
      return LineOutcome::kSplit;
    case LineProblem::kTooLarge:
      return LineOutcome::kTooLarge;
    case LineProblem::kDamaged:
      return LineOutcome::kDamaged;
    default:
      return LineOutcome::kNone;
  }
}

LineOutcome OutcomeOf(StatusCode code) {
  return code == StatusCode::kResourceExhausted ? LineOutcome::kTooLarge : LineOutcome::kDamaged;
}

void Count(LineOutcome outcome, size_t addresses, LineCounts* counts) {
  (*counts)[static_cast<size_t>(outcome)] += addresses;
}

}  // namespace

void FileLines::Want(uint64_t address) {
  if (known_.contains(address)) return;
  if (known_.size() >= kMaxKnownAddresses || Bytes() >= kMaxLineBytes) {
    known_.clear();
    frames_.clear();
    functions_.clear();
    file_names_.clear();
    text_bytes_ = 0;
  }
  wanted_.push_back(address);
}

void FileLines::GiveUpWanted(LineCounts* counts) {
  Count(failure_ == LineOutcome::kFound ? LineOutcome::kLate : failure_, wanted_.size(), counts);
  wanted_.clear();
}

void FileLines::Resolve(ParserProcess* parser, std::span<const int> files,
                        std::chrono::nanoseconds budget, NameBudget* names, LineCounts* counts) {
  std::ranges::sort(wanted_);
  wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
  const int64_t end_ns = SystemClock().MonotonicNanos() + budget.count();
  bool progress = false;
  while (!wanted_.empty() && failure_ == LineOutcome::kFound) {
    const std::chrono::nanoseconds left(end_ns - SystemClock().MonotonicNanos());
    if (left < kMinBudget) break;
    const size_t count = std::min(wanted_.size(), kMaxLineAddresses);
    const std::vector<uint64_t> some(wanted_.end() - static_cast<ptrdiff_t>(count), wanted_.end());
    wanted_.resize(wanted_.size() - count);
    if (!Ask(parser, files, some, left, names, counts)) break;
    progress = true;
  }
  GiveUpWanted(counts);
  strikes_ = progress ? 0 : strikes_ + 1;
  if (strikes_ == kMaxStrikes && failure_ == LineOutcome::kFound) Fail(strike_);
}

bool FileLines::Ask(ParserProcess* parser, std::span<const int> files,
                    std::span<const uint64_t> addresses, std::chrono::nanoseconds budget,
                    NameBudget* names, LineCounts* counts) {
  const Result<SourceLines> lines = RequestLines(parser, files, addresses, budget);
  strike_ = LineOutcome::kTooSlow;
  if (lines.ok()) return Take(*lines, addresses, names, counts);
  const StatusCode code = lines.status().code();
  if (code == StatusCode::kUnavailable || code == StatusCode::kDeadlineExceeded) {
    Count(LineOutcome::kLate, addresses.size(), counts);
    return code == StatusCode::kUnavailable;  // nothing that the file has done
  }
  if (code == StatusCode::kDataLoss) {
    strike_ = LineOutcome::kDied;  // perhaps for want of memory or time just then
    Count(strike_, addresses.size(), counts);
    return false;
  }
  Fail(OutcomeOf(code));
  Count(failure_, addresses.size(), counts);
  return true;
}

bool FileLines::Take(const SourceLines& lines, std::span<const uint64_t> addresses,
                     NameBudget* names, LineCounts* counts) {
  const LineOutcome trouble = OutcomeOf(lines.problem);
  size_t found = 0;
  size_t late = 0;
  size_t refused = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const SourceLines::Address& address = lines.addresses[i];
    if (address.state == SourceLines::State::kLate) {
      ++late;
      continue;
    }
    const size_t bytes_before = Bytes();
    if (bytes_before >= kMaxLineBytes || !names->HasRoom()) {
      ++refused;
      continue;
    }
    const auto first = static_cast<uint32_t>(frames_.size());
    known_[addresses[i]] = {.first = first, .count = address.count};
    if (address.state == SourceLines::State::kFound) ++found;
    for (uint32_t k = 0; k < address.count; ++k) {
      const SourceLines::Frame& frame = lines.frames[address.first + k];
      const auto [file, is_new] = file_names_.insert(ToUtf8(lines.texts[frame.file]));
      if (is_new) text_bytes_ += file->capacity();
      frames_.push_back(
          {.function = FunctionOf(lines.texts[frame.function]), .file = *file, .line = frame.line});
    }
    names->Take(Bytes() - bytes_before);
  }
  Count(LineOutcome::kFound, found, counts);
  Count(LineOutcome::kLate, late, counts);
  Count(LineOutcome::kTooLarge, refused, counts);
  Count(trouble, addresses.size() - found - late - refused, counts);
  if (lines.problem == LineProblem::kAbsent) Fail(LineOutcome::kNone);
  if (found == 0 && late == 0 && refused == 0 && trouble != LineOutcome::kNone) Fail(trouble);
  return late < addresses.size();
}

const SymbolName* FileLines::FunctionOf(const std::string& text) {
  if (text.empty()) return nullptr;
  const auto [found, is_new] = functions_.try_emplace(text);
  if (is_new) {
    SymbolName& name = found->second;
    name.system_name = ToUtf8(text);
    name.name = Demangle(name.system_name);
    text_bytes_ += text.size() + name.system_name.capacity() + name.name.capacity();
  }
  return &found->second;
}

std::span<const FileLines::Frame> FileLines::Find(uint64_t address) const {
  const auto found = known_.find(address);
  if (found == known_.end()) return {};
  return std::span(frames_).subspan(found->second.first, found->second.count);
}

size_t FileLines::Bytes() const {
  constexpr size_t kNodeBytes = 64;  // about what a map takes beside its content
  return text_bytes_ + frames_.capacity() * sizeof(Frame) +
         known_.size() * (kNodeBytes + sizeof(Slice)) +
         (functions_.size() + file_names_.size()) * (kNodeBytes + sizeof(SymbolName));
}

}  // namespace flamefleet::agent
