// SPDX-License-Identifier: Apache-2.0
// What reads the profiles of a day.
#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "base/pprof/wrapping_sum.h"
#include "store/db/day.h"
#include "store/db/digest.h"
#include "store/db/pack.h"
#include "store/db/symbols.h"

namespace flamefleet::store {
namespace {

// What a merge keeps of some profiles besides their samples.
struct Header {
  std::string head;
  size_t profiles = 0;
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
};

// Values of all stacks of one generation of symbols, of profiles with the same sample types.
struct StackSums {
  size_t width = 0;
  std::vector<Header> headers;
  std::vector<int64_t> values;  // width per stack

  // Adds the profiles of the pack that are in the range; `profiles` is how many the pack stands
  // for when it is the sum of them.
  void Add(const Pack& pack, const TimeRange& range, size_t profiles) {
    Header header;
    std::vector<bool> seen(pack.heads.size(), profiles != 0);
    std::vector<uint32_t> heads;  // in the order of their first profile
    if (profiles != 0) {
      heads.resize(pack.heads.size());
      std::iota(heads.begin(), heads.end(), 0U);
    }
    for (const PackedProfile& profile : pack.profiles) {
      if (profiles == 0 && (profile.time_ns < range.from_ns || profile.time_ns > range.until_ns)) {
        continue;
      }
      AddValues(profile);
      header.profiles += profiles == 0 ? 1 : profiles;
      header.duration_ns = pprof::WrappingSum(header.duration_ns, profile.duration_ns);
      if (header.time_ns == 0 && profile.has_time) header.time_ns = profile.time_ns;
      if (!seen[profile.head]) heads.push_back(profile.head);
      seen[profile.head] = true;
    }
    for (const uint32_t head : heads) {
      header.head = pack.heads[head];
      headers.push_back(std::move(header));
      header = {};
    }
  }

  void AddValues(const PackedProfile& profile) {
    if (profile.stacks.empty()) return;
    values.resize(std::max(values.size(), (profile.stacks.back() + size_t{1}) * width));
    const size_t count = profile.stacks.size();
    for (size_t type = 0; type < width; ++type) {
      for (size_t i = 0; i < count; ++i) {
        int64_t& value = values[profile.stacks[i] * width + type];
        value = pprof::WrappingSum(value, profile.values[type * count + i]);
      }
    }
  }

  size_t profiles() const {
    size_t sum = 0;
    for (const Header& header : headers)
      sum += header.profiles;
    return sum;
  }
};

// Gives `stacks`, which have a dummy value, the sample types of `head` and the values from
// `values[0]` on; stacks without any go.
void SetValues(const pprof::Profile& head, std::span<const int64_t> values,
               pprof::Profile* stacks) {
  const auto copy = [&](uint32_t index) { return stacks->strings.Intern(head.strings.Get(index)); };
  stacks->sample_types.clear();
  for (const pprof::ValueType& type : head.sample_types)
    stacks->sample_types.push_back({copy(type.type), copy(type.unit)});
  stacks->period_type = {copy(head.period_type.type), copy(head.period_type.unit)};
  const size_t width = head.sample_types.size();
  stacks->values.clear();
  size_t kept = 0;
  for (size_t i = 0; i < stacks->samples.size() && (i + 1) * width <= values.size(); ++i) {
    const auto of_stack = values.subspan(i * width, width);
    if (std::all_of(of_stack.begin(), of_stack.end(), [](int64_t v) { return v == 0; })) continue;
    stacks->samples[kept++] = stacks->samples[i];
    stacks->values.insert(stacks->values.end(), of_stack.begin(), of_stack.end());
  }
  stacks->samples.resize(kept);
}

// Selects from one series.
class SeriesSelection {
 public:
  SeriesSelection(SqliteConnection* connection, int64_t series, const Labels& labels,
                  const TimeRange& range, const PartVisitor& visitor)
      : connection_(connection),
        series_(series),
        labels_(labels),
        range_(range),
        visitor_(visitor) {}

  Status Run() {
    FF_RETURN_IF_ERROR(VisitOriginals());
    FF_RETURN_IF_ERROR(ReadPacks());
    for (const auto& [key, sums] : sums_) {
      std::vector<pprof::Profile> parts;
      const Status read = ReadParts(key.first, sums, &parts);
      if (read.code() == StatusCode::kDataLoss) {
        damaged_ += sums.profiles();
        continue;
      }
      FF_RETURN_IF_ERROR(read);
      size_t parts_bytes = 0;
      for (const pprof::Profile& part : parts)
        parts_bytes += pprof::BytesHeld(part);
      for (size_t i = 0; i < parts.size(); ++i) {
        const size_t profiles = i < sums.headers.size() ? sums.headers[i].profiles : 0;
        FF_RETURN_IF_ERROR(visitor_({labels_, profiles, &parts[i], sums_bytes_ + parts_bytes}));
      }
    }
    return OkStatus();
  }

  size_t damaged() const { return damaged_; }

 private:
  void BindRange(SqliteStatement* statement) const {
    statement->BindInt(1, series_);
    statement->BindInt(2, range_.from_ns);
    statement->BindInt(3, range_.until_ns);
  }

  Status VisitOriginals();
  Status ReadPacks();
  // The headers, then the samples.
  Status ReadParts(int64_t generation, const StackSums& sums, std::vector<pprof::Profile>* parts);

  SqliteConnection* const connection_;
  const int64_t series_;
  const Labels& labels_;
  const TimeRange& range_;
  const PartVisitor& visitor_;
  // By generation of the symbols and sample types.
  std::map<std::pair<int64_t, std::string>, StackSums> sums_;
  size_t sums_bytes_ = 0;
  size_t damaged_ = 0;
};

Status SeriesSelection::VisitOriginals() {
  FF_ASSIGN_OR_RETURN(
      SqliteStatement rows,
      connection_->Prepare("SELECT pprof, digest FROM profile JOIN original ON profile_id = id "
                           "WHERE series_id = ?1 AND time_ns BETWEEN ?2 AND ?3 ORDER BY time_ns"));
  BindRange(&rows);
  pprof::Profile profile;
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return OkStatus();
    const bool good = Digest(rows.Bytes(0)) == rows.Bytes(1) &&
                      pprof::Decode(rows.Bytes(0), pprof::DecodeLimits{}, &profile).ok();
    if (!good) {
      ++damaged_;
      continue;
    }
    FF_RETURN_IF_ERROR(visitor_({labels_, 1, &profile, pprof::BytesHeld(profile)}));
  }
}

Status SeriesSelection::ReadPacks() {
  FF_ASSIGN_OR_RETURN(
      SqliteStatement rows,
      connection_->Prepare("SELECT first_ns BETWEEN ?2 AND ?3 AND last_ns BETWEEN ?2 AND ?3, "
                           "profiles, generation, sample_types, total, detail FROM pack "
                           "WHERE series_id = ?1 AND first_ns <= ?3 AND last_ns >= ?2 "
                           "ORDER BY first_ns"));
  BindRange(&rows);
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    const bool whole = rows.Int(0) != 0;
    const auto profiles = static_cast<size_t>(rows.Int(1));
    const Result<Pack> pack = DecodePack(rows.Bytes(whole ? 4 : 5));
    StackSums& sums = sums_[{rows.Int(2), std::string(rows.Bytes(3))}];
    if (sums.width == 0 && pack.ok()) sums.width = pack->width;
    if (!pack.ok() || pack->width != sums.width) {
      damaged_ += profiles;
      continue;
    }
    sums.Add(*pack, range_, whole ? profiles : 0);
  }
  for (const auto& [key, sums] : sums_)
    sums_bytes_ += sums.values.capacity() * sizeof(int64_t);
  return OkStatus();
}

Status SeriesSelection::ReadParts(int64_t generation, const StackSums& sums,
                                  std::vector<pprof::Profile>* parts) {
  for (const Header& header : sums.headers) {
    pprof::Profile& head = parts->emplace_back();
    if (!pprof::Decode(header.head, pprof::DecodeLimits{}, &head).ok()) {
      return DataLossError("pack: a head is damaged");
    }
    head.time_ns = header.time_ns;
    head.duration_ns = header.duration_ns;
  }
  if (parts->empty()) return OkStatus();
  const std::span<const int64_t> values(sums.values);
  return VisitSymbols(connection_, series_, generation,
                      [&](uint32_t first_stack, pprof::Profile* stacks) {
                        const size_t begin = std::min(first_stack * sums.width, values.size());
                        SetValues(parts->front(), values.subspan(begin), stacks);
                        if (!stacks->samples.empty()) parts->push_back(std::move(*stacks));
                        return OkStatus();
                      });
}

}  // namespace

Status Day::Select(const Selector& selector, const TimeRange& range, const PartVisitor& visitor,
                   size_t* damaged) const {
  FF_ASSIGN_OR_RETURN(std::optional<SqliteConnection> snapshot, OpenSnapshot());
  if (!snapshot) return OkStatus();
  for (const SeriesIds::value_type* const series : MatchingSeries(selector)) {
    SeriesSelection selection(&*snapshot, series->second, series->first, range, visitor);
    const Status status = selection.Run();
    *damaged += selection.damaged();
    FF_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

}  // namespace flamefleet::store
