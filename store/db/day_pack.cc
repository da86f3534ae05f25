// SPDX-License-Identifier: Apache-2.0
// What packs the profiles of a day.
#include <algorithm>
#include <map>
#include <optional>

#include "base/pprof/merge.h"
#include "base/pprof/stack_table.h"
#include "base/pprof/wrapping_sum.h"
#include "store/db/day.h"
#include "store/db/digest.h"
#include "store/db/pack.h"
#include "store/db/symbols.h"

namespace flamefleet::store {
namespace {

// Pushes wait as long as a step takes, so it reads no more after this time; but some, since each
// step reads and writes the pack that grows.
constexpr int64_t kStepNanos = int64_t{100} * 1'000'000;
constexpr int64_t kMinProfilesPerStep = 8;
constexpr int64_t kMaxProfilesPerStep = 64;
// Stacks, values and bytes of heads of a pack that may still grow, and of what a step reads beside
// the last profile: so the largest pack is far below kMaxPackBytes.
constexpr size_t kMaxPackElements = 2 << 20;
// More rows of symbols become one: each repeats the names that its stacks share with others.
constexpr size_t kMaxSymbolRows = 8;

std::string TypesOf(const pprof::Profile& profile) {
  const auto text = [&](uint32_t index) { return std::string(profile.strings.Get(index)); };
  return pprof::SampleTypeNames(profile) + " " + text(profile.period_type.type) + "/" +
         text(profile.period_type.unit);
}

size_t ElementsOf(const Pack& pack) {
  size_t elements = 0;
  for (const std::string& head : pack.heads)
    elements += head.size();
  for (const PackedProfile& profile : pack.profiles)
    elements += profile.stacks.size() + profile.values.size();
  return elements;
}

// The profile's values by number of the stack; `table` gets the stacks that it does not have.
PackedProfile PackProfile(const pprof::Profile& profile, int64_t time_ns,
                          pprof::StackTable* table) {
  const size_t width = profile.sample_types.size();
  std::vector<std::pair<uint32_t, size_t>> stacks;  // number, sample
  table->Begin(profile);
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const int64_t* const values = profile.values.data() + i * width;
    const bool zero = std::all_of(values, values + width, [](int64_t v) { return v == 0; });
    if (!zero) stacks.emplace_back(table->AddStack(i), i);
  }
  std::sort(stacks.begin(), stacks.end());
  PackedProfile packed{
      .time_ns = time_ns, .has_time = profile.time_ns != 0, .duration_ns = profile.duration_ns};
  for (const auto& [stack, sample] : stacks) {
    if (packed.stacks.empty() || packed.stacks.back() != stack) packed.stacks.push_back(stack);
  }
  packed.values.resize(packed.stacks.size() * width);
  for (size_t type = 0; type < width; ++type) {
    size_t at = type * packed.stacks.size();
    for (size_t i = 0; i < stacks.size(); ++i) {
      if (i > 0 && stacks[i].first != stacks[i - 1].first) ++at;
      packed.values[at] =
          pprof::WrappingSum(packed.values[at], profile.values[stacks[i].second * width + type]);
    }
  }
  return packed;
}

// Packs profiles of one hour of one series, inside of a transaction.
class HourPacker {
 public:
  HourPacker(SqliteConnection* connection, const Day::SeriesHour& what, const Clock& clock)
      : connection_(connection), what_(what), clock_(clock) {}

  Result<Day::PackOutcome> Run() {
    FF_RETURN_IF_ERROR(LoadNewestSymbols());
    const auto stacks_before = static_cast<uint32_t>(table_->Size());
    Day::PackOutcome outcome;
    FF_ASSIGN_OR_RETURN(outcome.more, ReadOriginals());
    FF_RETURN_IF_ERROR(LeaveUnpackable());
    for (auto& [types, group] : groups_) {
      FF_RETURN_IF_ERROR(StoreGroup(types, &group));
      outcome.profiles += group.profile_ids.size();
    }
    FF_RETURN_IF_ERROR(StoreSymbols(stacks_before));
    return outcome;
  }

 private:
  // What was read, of profiles with the same sample types.
  struct Group {
    Pack pack;
    std::vector<int64_t> profile_ids;  // of each profile of the pack
  };

  // The series, and the first and the last nanosecond of the hour, as ?1 to ?3.
  void BindHour(SqliteStatement* statement) const {
    statement->BindInt(1, what_.series);
    statement->BindInt(2, what_.hour * kNanosPerHour);
    statement->BindInt(3, (what_.hour + 1) * kNanosPerHour - 1);
  }
  Status LoadNewestSymbols();
  // True when more are left.
  Result<bool> ReadOriginals();
  Status LeaveUnpackable();
  // Takes the profiles of the group.
  Status StoreGroup(const std::string& types, Group* group);
  // The newest pack of the hour that may take `elements` and `profiles` more; 0 when there is none.
  Result<int64_t> FindPack(const std::string& types, size_t profiles, size_t elements, Pack* pack);
  Status StorePack(int64_t id, const std::string& types, const Pack& pack,
                   const std::vector<int64_t>& profile_ids);
  Status StoreSymbols(uint32_t stacks_before);

  SqliteConnection* const connection_;
  const Day::SeriesHour what_;
  const Clock& clock_;
  const int64_t until_ns_ = clock_.MonotonicNanos() + kStepNanos;
  int64_t generation_ = 0;
  size_t symbol_rows_ = 0;
  std::optional<pprof::StackTable> table_{pprof::StackTable::Mappings::kExact};
  std::map<std::string, Group> groups_;
  std::vector<int64_t> unpackable_;
};

Status HourPacker::LoadNewestSymbols() {
  FF_ASSIGN_OR_RETURN(generation_, NewestGeneration(connection_, what_.series));
  const Status loaded =
      LoadSymbols(connection_, what_.series, generation_, &*table_, &symbol_rows_);
  const bool damaged = loaded.code() == StatusCode::kDataLoss;
  if (!damaged) FF_RETURN_IF_ERROR(loaded);
  if (!damaged && table_->Bytes() < kMaxSymbolsBytes) return OkStatus();
  // The next one: a selection leaves out what is damaged, and says so.
  ++generation_;
  symbol_rows_ = 0;
  table_.emplace(pprof::StackTable::Mappings::kExact);
  return OkStatus();
}

Result<bool> HourPacker::ReadOriginals() {
  FF_ASSIGN_OR_RETURN(
      SqliteStatement rows,
      connection_->Prepare("SELECT id, time_ns, pprof, digest FROM profile JOIN original ON "
                           "profile_id = id WHERE series_id = ?1 AND time_ns BETWEEN ?2 AND ?3 "
                           "AND pack_id IS NULL ORDER BY time_ns"));
  BindHour(&rows);
  pprof::Profile profile;
  size_t elements = 0;
  for (int64_t i = 0;; ++i) {
    FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return false;
    const bool late = i >= kMinProfilesPerStep && clock_.MonotonicNanos() >= until_ns_;
    if (late || i == kMaxProfilesPerStep || elements >= kMaxPackElements ||
        table_->Bytes() >= kMaxSymbolsBytes) {
      return true;
    }
    const bool good = Digest(rows.Bytes(2)) == rows.Bytes(3) &&
                      pprof::Decode(rows.Bytes(2), pprof::DecodeLimits{}, &profile).ok();
    if (!good) {
      unpackable_.push_back(rows.Int(0));
      continue;
    }
    Group& group = groups_[TypesOf(profile)];
    group.pack.width = profile.sample_types.size();
    PackedProfile packed = PackProfile(profile, rows.Int(1), &*table_);
    std::string head = HeadOf(profile);
    elements += packed.stacks.size() + packed.values.size() + head.size();
    packed.head = FindOrAddHead(&group.pack, std::move(head));
    group.pack.profiles.push_back(std::move(packed));
    group.profile_ids.push_back(rows.Int(0));
  }
}

// They stay as they are: a selection judges them.
Status HourPacker::LeaveUnpackable() {
  FF_ASSIGN_OR_RETURN(SqliteStatement leave,
                      connection_->Prepare("UPDATE profile SET pack_id = 0 WHERE id = ?1"));
  for (const int64_t profile : unpackable_) {
    leave.BindInt(1, profile);
    FF_RETURN_IF_ERROR(leave.Run());
  }
  return OkStatus();
}

Status HourPacker::StoreGroup(const std::string& types, Group* group) {
  Pack pack;
  FF_ASSIGN_OR_RETURN(const int64_t id,
                      FindPack(types, group->pack.profiles.size(), ElementsOf(group->pack), &pack));
  pack.width = group->pack.width;
  for (PackedProfile& profile : group->pack.profiles) {
    profile.head = FindOrAddHead(&pack, group->pack.heads[profile.head]);
    pack.profiles.push_back(std::move(profile));
  }
  std::stable_sort(
      pack.profiles.begin(), pack.profiles.end(),
      [](const PackedProfile& a, const PackedProfile& b) { return a.time_ns < b.time_ns; });
  return StorePack(id, types, pack, group->profile_ids);
}

Result<int64_t> HourPacker::FindPack(const std::string& types, size_t profiles, size_t elements,
                                     Pack* pack) {
  FF_ASSIGN_OR_RETURN(
      SqliteStatement newest,
      connection_->Prepare("SELECT id, detail FROM pack WHERE series_id = ?1 AND "
                           "first_ns BETWEEN ?2 AND ?3 AND sample_types = ?4 AND generation = ?5 "
                           "ORDER BY id DESC LIMIT 1"));
  BindHour(&newest);
  newest.BindText(4, types);
  newest.BindInt(5, generation_);
  FF_ASSIGN_OR_RETURN(const bool found, newest.Step());
  if (!found) return int64_t{0};
  Result<Pack> stored = DecodePack(newest.Bytes(1));
  const bool has_room = stored.ok() && stored->profiles.size() + profiles <= kMaxPackProfiles &&
                        ElementsOf(*stored) + elements <= kMaxPackElements;
  if (!has_room) return int64_t{0};
  *pack = *std::move(stored);
  return newest.Int(0);
}

Status HourPacker::StorePack(int64_t id, const std::string& types, const Pack& pack,
                             const std::vector<int64_t>& profile_ids) {
  FF_ASSIGN_OR_RETURN(
      SqliteStatement store,
      connection_->Prepare("INSERT OR REPLACE INTO pack VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                           "?9)"));
  const std::string total = EncodePack(SumOf(pack));
  const std::string detail = EncodePack(pack);
  if (id != 0) store.BindInt(1, id);
  store.BindInt(2, what_.series);
  store.BindInt(3, pack.profiles.front().time_ns);
  store.BindInt(4, pack.profiles.back().time_ns);
  store.BindInt(5, static_cast<int64_t>(pack.profiles.size()));
  store.BindText(6, types);
  store.BindInt(7, generation_);
  store.BindBlob(8, total);
  store.BindBlob(9, detail);
  FF_RETURN_IF_ERROR(store.Run());
  const int64_t stored_id = connection_->LastInsertId();
  FF_ASSIGN_OR_RETURN(SqliteStatement packed,
                      connection_->Prepare("UPDATE profile SET pack_id = ?1 WHERE id = ?2"));
  FF_ASSIGN_OR_RETURN(SqliteStatement remove,
                      connection_->Prepare("DELETE FROM original WHERE profile_id = ?1"));
  for (const int64_t profile : profile_ids) {
    packed.BindInt(1, stored_id);
    packed.BindInt(2, profile);
    FF_RETURN_IF_ERROR(packed.Run());
    remove.BindInt(1, profile);
    FF_RETURN_IF_ERROR(remove.Run());
  }
  return OkStatus();
}

Status HourPacker::StoreSymbols(uint32_t stacks_before) {
  if (table_->Size() == stacks_before) return OkStatus();
  uint32_t first = stacks_before;
  if (symbol_rows_ >= kMaxSymbolRows) {
    FF_ASSIGN_OR_RETURN(
        SqliteStatement remove,
        connection_->Prepare("DELETE FROM symbols WHERE series_id = ?1 AND generation = ?2"));
    remove.BindInt(1, what_.series);
    remove.BindInt(2, generation_);
    FF_RETURN_IF_ERROR(remove.Run());
    first = 0;
  }
  return InsertSymbols(connection_, what_.series, generation_, *table_, first);
}

}  // namespace

Result<std::vector<Day::SeriesHour>> Day::FindPackable(int64_t now_ns) {
  FF_ASSIGN_OR_RETURN(SqliteStatement rows,
                      connection_->Prepare("SELECT series_id, time_ns / ?1 AS hour FROM profile "
                                           "WHERE pack_id IS NULL GROUP BY 1, 2 "
                                           "HAVING count(*) >= ?2 OR (hour + 1) * ?1 < ?3"));
  rows.BindInt(1, kNanosPerHour);
  rows.BindInt(2, kPackProfiles);
  rows.BindInt(3, now_ns - kPackAfterNs);
  std::vector<SeriesHour> found;
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return found;
    found.push_back({rows.Int(0), rows.Int(1)});
  }
}

Result<Day::PackOutcome> Day::PackHour(const SeriesHour& what, const Clock& clock) {
  FF_RETURN_IF_ERROR(connection_->Execute("BEGIN IMMEDIATE"));
  const Result<PackOutcome> outcome = HourPacker(&*connection_, what, clock).Run();
  const Status stored = outcome.ok() ? connection_->Execute("COMMIT") : outcome.status();
  if (!stored.ok()) {
    connection_->Execute("ROLLBACK").IgnoreError();
    return stored;
  }
  FF_RETURN_IF_ERROR(connection_->Execute("PRAGMA incremental_vacuum"));
  return outcome;
}

}  // namespace flamefleet::store
