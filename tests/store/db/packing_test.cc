// SPDX-License-Identifier: Apache-2.0
// Packed profiles are those that were stored, by the judgement of google/pprof.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "base/pprof/merge.h"
#include "base/sqlite.h"
#include "store/db/check.h"
#include "store/db/database.h"
#include "store/db/pack.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/fakes/fake_clock.h"
#include "tests/store/store_client.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::store {
namespace {

constexpr int64_t kNow = (20'000 * 24 + 12) * kNanosPerHour;  // noon of 2024-10-04
constexpr size_t kPlenty = size_t{1} << 30;

// Everything that a profile says of its samples, in no order and without its numbering.
using Samples = std::map<std::string, std::vector<int64_t>>;

std::string Describe(const pprof::Profile& p, const pprof::Location& location) {
  const auto text = [&](uint32_t index) { return std::string(p.strings.Get(index)) + "|"; };
  std::string out = "@";
  // google/pprof gives locations without a mapping one that says nothing.
  const bool mapped =
      location.mapping != pprof::kNone &&
      (p.mappings[location.mapping].file_name != 0 || p.mappings[location.mapping].build_id != 0);
  if (!mapped) {
    out += std::to_string(location.address);
  } else {
    const pprof::Mapping& m = p.mappings[location.mapping];
    out += std::to_string(location.address - m.memory_start) + "|" + std::to_string(m.file_offset) +
           "|" + text(m.file_name) + text(m.build_id);
  }
  for (uint32_t i = 0; i < location.line_count; ++i) {
    const pprof::Line& line = p.lines[location.first_line + i];
    const pprof::Function& f = p.functions[line.function];
    out += "\n  " + text(f.name) + text(f.system_name) + text(f.file_name) +
           std::to_string(f.start_line) + "|" + std::to_string(line.line);
  }
  return out + "\n";
}

Samples SamplesOf(const pprof::Profile& p) {
  Samples samples;
  const size_t width = p.sample_types.size();
  for (size_t i = 0; i < p.samples.size(); ++i) {
    const pprof::Sample& sample = p.samples[i];
    std::string key;
    for (uint32_t k = 0; k < sample.location_count; ++k) {
      key += Describe(p, p.locations[p.sample_locations[sample.first_location + k]]);
    }
    std::vector<std::string> labels;
    for (uint32_t k = 0; k < sample.label_count; ++k) {
      const pprof::Label& label = p.sample_labels[sample.first_label + k];
      labels.push_back(std::string(p.strings.Get(label.key)) + "=" +
                       std::string(p.strings.Get(label.text)) + "|" + std::to_string(label.number) +
                       std::string(p.strings.Get(label.unit)));
    }
    std::sort(labels.begin(), labels.end());
    for (const std::string& label : labels)
      key += label + "\n";
    std::vector<int64_t>& sums = samples[key];
    sums.resize(width);
    for (size_t type = 0; type < width; ++type)
      sums[type] += p.values[i * width + type];
  }
  // A merge drops them, what google/pprof makes of a single profile is none.
  std::erase_if(samples, [](const auto& sample) {
    return std::all_of(sample.second.begin(), sample.second.end(), [](auto v) { return v == 0; });
  });
  return samples;
}

// Times, types and texts of a profile.
std::string HeaderOf(const pprof::Profile& p) {
  const auto text = [&](uint32_t index) { return std::string(p.strings.Get(index)) + "|"; };
  std::string out = pprof::SampleTypeNames(p) + "\n" + text(p.period_type.type) +
                    text(p.period_type.unit) + std::to_string(p.period) + "\n" +
                    std::to_string(p.time_ns) + "+" + std::to_string(p.duration_ns) + "\n" +
                    text(p.drop_frames) + text(p.keep_frames) + text(p.default_sample_type) +
                    text(p.doc_url);
  for (const uint32_t comment : p.comments)
    out += text(comment);
  if (!p.mappings.empty()) out += p.strings.Get(p.mappings[0].file_name);
  return out;
}

// A real profile with other values, some samples less, perhaps at another address, at that time.
pprof::Profile Varied(const std::string& file, uint32_t seed, int64_t time_ns) {
  std::mt19937 random(seed);
  pprof::Profile p = pprof::DecodeOrDie(pprof::ReadProfileFile(file));
  const size_t width = p.sample_types.size();
  for (size_t i = 0; i < p.samples.size(); ++i) {
    const int64_t factor = static_cast<int64_t>(random() % 4);  // 0: gone
    for (size_t type = 0; type < width; ++type)
      p.values[i * width + type] *= factor;
  }
  if (random() % 3 == 0 && !p.mappings.empty()) {
    const uint64_t slide = (random() % 8) << 20;
    p.mappings[0].memory_start += slide;
    p.mappings[0].memory_limit += slide;
    for (pprof::Location& location : p.locations) {
      if (location.mapping == 0) location.address += slide;
    }
  }
  if (random() % 3 == 0) {
    p.comments = {p.strings.Intern("run " + std::to_string(random() % 5))};
  }
  if (random() % 5 == 0) p.doc_url = p.strings.Intern("https://example.org/" + file);
  p.time_ns = time_ns;
  p.duration_ns = 15 * kNanosPerSecond + static_cast<int64_t>(random() % 1000);
  return p;
}

class PackingTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    database_.reset();
    metrics_ = std::make_unique<Metrics>();
    Result<std::unique_ptr<Database>> database =
        Database::Open({.directory = dir_.path()}, &clock_, metrics_.get());
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
  }

  void Append(const std::string& service, int64_t time_ns, const std::string& pprof) {
    const Status status = database_->Append({{SeriesLabels(service), time_ns, pprof}});
    ASSERT_TRUE(status.ok()) << status;
  }

  double Metric(const std::string& name) const {
    const std::string text = metrics_->RenderText();
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  // The writer looks for what there is to pack when time has passed.
  void WaitUntilPacked(double profiles) {
    clock_.Advance(kNanosPerHour);
    const auto packed = [&] {
      return Metric("flamefleet_store_profiles_packed_total") == profiles;
    };
    EXPECT_TRUE(WaitUntil(packed, std::chrono::minutes(2)))
        << Metric("flamefleet_store_profiles_packed_total");
  }

  pprof::Profile Merge(const std::string& service, const TimeRange& range,
                       size_t* profiles = nullptr) {
    pprof::Merger merger(kPlenty);
    size_t count = 0;
    const Status status = database_->Select(*ParseSelector("{service_name=\"" + service + "\"}"),
                                            range, [&](const SelectedPart& part) {
                                              count += part.profiles;
                                              return merger.Add(*part.profile);
                                            });
    EXPECT_TRUE(status.ok()) << status;
    if (profiles != nullptr) *profiles = count;
    return merger.Take();
  }

  std::string PathOfDay() const { return dir_.path() + "/" + Day::FileName(kNow / kNanosPerDay); }

  int64_t Count(const std::string& table) {
    const std::string path = PathOfDay();
    Result<SqliteConnection> file = SqliteConnection::Open(path, SqliteConnection::Mode::kReadOnly);
    return *file->QueryInt(("SELECT count(*) FROM " + table).c_str());
  }

  TempDir dir_;
  FakeClock clock_{kNow};
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Database> database_;
};

TEST_F(PackingTest, MergeOfPackedProfilesIsThatOfGooglePprof) {
  if (PprofTool().empty()) FF_SKIP("no Go: `go tool pprof` is the oracle");
  const std::vector<std::vector<std::string>> sets = {
      {"hand_cpu2.pb.gz", "real_cpu.pb.gz", "sdk_go_cpu.pb.gz"},
      {"hand_mem.pb.gz", "real_allocs.pb.gz", "sdk_go_heap.pb.gz"},
      {"sdk_node_wall.pb.gz"},
  };
  constexpr uint32_t kEach = 340;
  double packed = 0;
  for (const std::vector<std::string>& set : sets) {
    std::vector<std::string> paths;
    std::vector<NewProfile> profiles;
    for (uint32_t i = 0; i < kEach; ++i) {
      const int64_t time_ns = kNow - (kEach - i) * 15 * kNanosPerSecond;
      std::string bytes;
      pprof::Encode(Varied(set[i % set.size()], i, time_ns), &bytes);
      paths.push_back(dir_.path() + "/" + std::to_string(i) + ".pb");
      std::ofstream(paths.back(), std::ios::binary) << bytes;
      profiles.push_back({SeriesLabels(set[0]), time_ns, bytes});
    }
    ASSERT_TRUE(database_->Append(profiles).ok());
    packed += kEach;
    WaitUntilPacked(packed);
    const auto expect_merge = [&](size_t from, size_t until) {
      const std::string out = dir_.path() + "/merged.pb.gz";
      std::vector<std::string> argv = {PprofTool(), "-proto", "-symbolize=none", "-output", out};
      argv.insert(argv.end(), paths.begin() + static_cast<ptrdiff_t>(from),
                  paths.begin() + static_cast<ptrdiff_t>(until));
      const CommandResult run = RunCommand(argv);
      ASSERT_EQ(run.exit_code, 0) << run.err;
      std::ifstream in(out, std::ios::binary);
      const pprof::Profile want =
          pprof::DecodeOrDie(std::string(std::istreambuf_iterator<char>(in), {}));
      size_t count = 0;
      const pprof::Profile got =
          Merge(set[0], {profiles[from].time_ns, profiles[until - 1].time_ns}, &count);
      EXPECT_EQ(count, until - from);
      EXPECT_EQ(HeaderOf(got), HeaderOf(want));
      EXPECT_EQ(SamplesOf(got), SamplesOf(want));
    };
    expect_merge(0, kEach);
    expect_merge(50, 300);  // begins and ends inside of an hour
    expect_merge(7, 8);
  }
  EXPECT_EQ(Count("original"), 0);
}

TEST_F(PackingTest, RandomProfilesComeBackEqual) {
  std::vector<pprof::Profile> profiles(40);
  for (uint32_t i = 0; i < profiles.size(); ++i) {
    pprof::FillRandomProfile(i, 30, &profiles[i]);
    profiles[i].time_ns = i % 7 == 0 ? 0 : kNow + i;
    Append("s", kNow + i, pprof::EncodeToString(profiles[i]));
  }
  WaitUntilPacked(40);
  for (uint32_t i = 0; i < profiles.size(); ++i) {
    pprof::Merger merger(kPlenty);
    ASSERT_TRUE(merger.Add(profiles[i]).ok());
    const pprof::Profile want = merger.Take();
    const pprof::Profile got = Merge("s", {kNow + i, kNow + i});
    EXPECT_EQ(HeaderOf(got), HeaderOf(want)) << i;
    EXPECT_EQ(SamplesOf(got), SamplesOf(want)) << i;
  }
}

TEST_F(PackingTest, APackGrowsAndItsSymbolsAreSharedOverTheDay) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      const int64_t time_ns = kNow + round * 100 + i;
      Append("s", time_ns, CpuProfileAt(time_ns));
    }
    clock_.Advance(kNanosPerHour / 100);
    EXPECT_TRUE(WaitUntil(
        [&] { return Metric("flamefleet_store_profiles_packed_total") == (round + 1) * 50; }));
  }
  EXPECT_EQ(Count("pack"), 1);
  EXPECT_EQ(Count("symbols"), 1);
  size_t count = 0;
  const pprof::Profile sum = Merge("s", {0, INT64_MAX}, &count);
  EXPECT_EQ(count, 150U);
  EXPECT_EQ(pprof::TotalValue(sum, 1), 150 * int64_t{60'000'000});
}

// A machine on which everything takes a second.
class SlowClock final : public Clock {
 public:
  int64_t WallNanos() const override { return kNow; }
  int64_t MonotonicNanos() const override { return now_ns_ += kNanosPerSecond; }

 private:
  mutable int64_t now_ns_ = 0;
};

TEST(DayPacking, AStepThatTakesLongEndsEarlyAndTheNextGoesOn) {
  constexpr size_t kProfiles = 50;
  const TempDir dir;
  const std::shared_ptr<Day> day = *Day::Open(dir.path(), kNow / kNanosPerDay);
  std::vector<NewProfile> profiles;
  std::vector<const NewProfile*> pointers;
  for (size_t i = 0; i < kProfiles; ++i) {
    const int64_t time_ns = kNow + static_cast<int64_t>(i);
    profiles.push_back({SeriesLabels("s"), time_ns, CpuProfileAt(time_ns)});
  }
  for (const NewProfile& profile : profiles)
    pointers.push_back(&profile);
  ASSERT_TRUE(day->Append(pointers).ok());
  const std::vector<Day::SeriesHour> found = *day->FindPackable(kNow);
  ASSERT_EQ(found.size(), 1U);
  const SlowClock clock;
  size_t packed = 0;
  for (Day::PackOutcome step{.more = true}; step.more; packed += step.profiles) {
    step = *day->PackHour(found[0], clock);
    EXPECT_LT(step.profiles, 10U);
  }
  EXPECT_EQ(packed, kProfiles);
  size_t read = 0;
  size_t damaged = 0;
  const Status selected = day->Select(
      *ParseSelector("process_cpu"), {0, INT64_MAX},
      [&](const SelectedPart& part) {
        read += part.profiles;
        return OkStatus();
      },
      &damaged);
  EXPECT_TRUE(selected.ok()) << selected;
  EXPECT_EQ(read, kProfiles);
  EXPECT_EQ(damaged, 0U);
}

TEST_F(PackingTest, RetryOfAPackedProfileIsStoredOnce) {
  for (int i = 0; i < 50; ++i)
    Append("s", kNow + i, CpuProfileAt(kNow + i));
  WaitUntilPacked(50);
  Append("s", kNow + 7, CpuProfileAt(kNow + 7));
  EXPECT_EQ(Metric("flamefleet_store_profiles_duplicate_total"), 1);
  EXPECT_EQ(pprof::TotalValue(Merge("s", {0, INT64_MAX}), 0), 50 * 6);
}

TEST_F(PackingTest, FewProfilesOfAnHourArePackedWhenItIsOver) {
  Append("s", kNow, CpuProfileAt(kNow));
  clock_.Advance(kNanosPerHour);  // five minutes are not over
  Append("t", kNow, CpuProfileAt(kNow));
  WaitUntilPacked(2);
  EXPECT_EQ(Count("original"), 0);
  Open();
  EXPECT_EQ(pprof::TotalValue(Merge("s", {0, INT64_MAX}), 0), 6);
}

TEST_F(PackingTest, OtherSampleTypesGoToAnotherPack) {
  for (int i = 0; i < 50; ++i) {
    Append("s", kNow + i,
           i % 2 == 0 ? CpuProfileAt(kNow + i)
                      : pprof::EncodeToString(Varied("hand_cpu1.pb.gz", 1, kNow + i)));
  }
  WaitUntilPacked(50);
  EXPECT_EQ(Count("pack"), 2);
  size_t profiles = 0;
  const Status status =
      database_->Select(*ParseSelector(""), {0, INT64_MAX}, [&](const SelectedPart& part) {
        profiles += part.profiles;
        return OkStatus();
      });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(profiles, 50U);
}

TEST_F(PackingTest, ProfilesThatAreTooLargeForOnePackGoToSeveral) {
  constexpr int kProfiles = 10;
  static_assert(kProfiles * (size_t{15} << 20) > kMaxPackBytes);
  for (int i = 0; i < kProfiles; ++i) {
    pprof::Profile p = pprof::DecodeOrDie(pprof::ReadProfileFile("hand_cpu1.pb.gz"));
    p.comments = {p.strings.Intern(std::string(15 << 20, static_cast<char>('a' + i)))};
    p.time_ns = kNow + i;
    std::string bytes;
    pprof::Encode(p, &bytes);
    Append("shop", kNow + i, bytes);
  }
  clock_.Advance(kNanosPerHour);  // so that the hour is over
  WaitUntilPacked(kProfiles);
  size_t profiles = 0;
  Merge("shop", {0, INT64_MAX}, &profiles);
  EXPECT_EQ(profiles, kProfiles);
}

TEST_F(PackingTest, CheckNamesWhatIsDamaged) {
  const std::string path = PathOfDay();
  for (int i = 0; i < 50; ++i)
    Append("a", kNow + i, CpuProfileAt(kNow + i));
  WaitUntilPacked(50);
  Append("a", kNow + 50, CpuProfileAt(kNow + 50));
  database_.reset();
  const Result<DayReport> good = CheckDay(path);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(good->problems, ::testing::IsEmpty());
  EXPECT_EQ(good->profiles, 51U);
  EXPECT_EQ(good->packed, 50U);

  const auto problem_after = [&](const char* sql) {
    const std::string copy = dir_.path() + "/copy.db";
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    Result<SqliteConnection> file =
        SqliteConnection::Open(copy, SqliteConnection::Mode::kReadWriteCreate);
    EXPECT_TRUE(file->Execute(sql).ok()) << sql;
    const Result<DayReport> report = CheckDay(copy);
    return !report.ok() || report->problems.empty() ? "" : report->problems.front();
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(problem_after("UPDATE original SET pprof = x'00'"), HasSubstr("bytes have changed"));
  EXPECT_THAT(problem_after("DELETE FROM original"), HasSubstr("1 profiles are in no place"));
  EXPECT_THAT(problem_after("UPDATE pack SET total = zeroblob(50)"), HasSubstr("total of pack 1"));
  EXPECT_THAT(problem_after("UPDATE pack SET detail = total"), HasSubstr("number of profiles"));
  EXPECT_THAT(problem_after("UPDATE symbols SET pprof = zeroblob(50)"), HasSubstr("series 1"));
  EXPECT_THAT(problem_after("DELETE FROM symbols"), HasSubstr("stacks that there are not"));
  EXPECT_THAT(problem_after("UPDATE pack SET profiles = 49"), HasSubstr("hold other profiles"));
  EXPECT_THAT(problem_after("PRAGMA user_version = 2"), HasSubstr("schema version 2"));
}

// Damage that SQLite does not see.
void ChangeBlob(const std::string& path, const std::string& table, const std::string& column) {
  Result<SqliteConnection> file =
      SqliteConnection::Open(path, SqliteConnection::Mode::kReadWriteCreate);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Execute(("UPDATE " + table + " SET " + column + " = zeroblob(length(" + column +
                             ")) WHERE series_id = 1")
                                .c_str())
                  .ok());
}

TEST_F(PackingTest, DamagedPackOrSymbolsAreLeftOutAndCountedAndTheRestServed) {
  const std::string path = PathOfDay();
  for (const std::string service : {"a", "b"}) {
    for (int i = 0; i < 50; ++i)
      Append(service, kNow + i, CpuProfileAt(kNow + i));
  }
  WaitUntilPacked(100);
  database_.reset();
  ChangeBlob(path, "pack", "total");
  Open();
  EXPECT_TRUE(Merge("a", {0, INT64_MAX}).samples.empty());
  EXPECT_EQ(Metric("flamefleet_store_profiles_damaged_total"), 50);
  EXPECT_EQ(pprof::TotalValue(Merge("a", {kNow, kNow + 10}), 0), 11 * 6);
  EXPECT_EQ(pprof::TotalValue(Merge("b", {0, INT64_MAX}), 0), 50 * 6);

  database_.reset();
  ChangeBlob(path, "symbols", "pprof");
  Open();
  EXPECT_TRUE(Merge("a", {kNow, kNow + 10}).samples.empty());
  EXPECT_EQ(Metric("flamefleet_store_profiles_damaged_total"), 11);
  // What comes later has symbols of its own.
  for (int i = 0; i < 50; ++i)
    Append("a", kNow + 100 + i, CpuProfileAt(kNow + 100 + i));
  WaitUntilPacked(50);
  EXPECT_EQ(pprof::TotalValue(Merge("a", {kNow + 100, INT64_MAX}), 0), 50 * 6);
}

}  // namespace
}  // namespace flamefleet::store
