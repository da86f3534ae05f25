// SPDX-License-Identifier: Apache-2.0
// Judged by libprotobuf, which reads what we write, and by go tool pprof.
#include "agent/profile/profile_builder.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "proto/pprof/profile.pb.h"

namespace flamefleet::agent {
namespace {

using Frames = std::vector<uint64_t>;
using Message = perftools::profiles::Profile;

std::shared_ptr<const ProcessImage> Image(uint64_t base) {
  static const auto program = std::make_shared<const MappedFile>();
  static const auto library = std::make_shared<const MappedFile>();
  auto image = std::make_shared<ProcessImage>();
  image->executable = "app";
  image->mappings = {
      {.start = 0x10000, .end = 0x11000, .path = "/lib/first.so", .file = library},
      {.start = base, .end = base + 0x1000, .offset = 0x1000, .path = "/bin/app", .file = program},
      {.start = base + 0x10000, .end = base + 0x11000}};
  return image;
}

class ProfileBuilderTest : public ::testing::Test {
 protected:
  void AddOfThread(uint32_t thread, const Frames& user) {
    bool is_new = false;
    window_.Add({.image = 0, .thread = thread, .user_frames = user}, &is_new);
  }

  void Add(uint32_t image, const Frames& kernel, const Frames& user, int times = 1) {
    bool is_new = false;
    for (int i = 0; i < times; ++i)
      window_.Add({.image = image, .kernel_frames = kernel, .user_frames = user}, &is_new);
  }

  std::string Encoded() {
    window_.period_ns = 10'000'000;
    window_.start_ns = 1'700'000'000'000'000'000;
    window_.duration_ns = 10'000'000'000;
    std::vector<uint32_t> stacks(window_.stacks().size());
    for (uint32_t i = 0; i < stacks.size(); ++i)
      stacks[i] = i;
    builder_.Build(window_, stacks, &profile_);
    std::string bytes;
    pprof::Encode(profile_, &bytes);
    return bytes;
  }

  Message Built() {
    Message message;
    EXPECT_TRUE(message.ParseFromString(Encoded()));
    return message;
  }

  static std::string Name(const Message& message, uint64_t location_id) {
    const auto& location = message.location(static_cast<int>(location_id) - 1);
    const auto& function = message.function(static_cast<int>(location.line(0).function_id()) - 1);
    return message.string_table(static_cast<int>(function.name()));
  }

  Window window_;
  Symbolizer symbolizer_{"/proc", 1 << 20};
  ProfileBuilder builder_{&symbolizer_};
  pprof::Profile profile_;
};

TEST_F(ProfileBuilderTest, SaysWhatItMeasured) {
  window_.images = {Image(0x400000)};
  Add(0, {}, {0x400100}, 3);
  const Message message = Built();
  ASSERT_EQ(message.sample_type_size(), 1);
  EXPECT_EQ(message.string_table(static_cast<int>(message.sample_type(0).type())), "cpu");
  EXPECT_EQ(message.string_table(static_cast<int>(message.sample_type(0).unit())), "nanoseconds");
  EXPECT_EQ(message.string_table(static_cast<int>(message.period_type().type())), "cpu");
  EXPECT_EQ(message.period(), 10'000'000);
  EXPECT_EQ(message.time_nanos(), 1'700'000'000'000'000'000);
  EXPECT_EQ(message.duration_nanos(), 10'000'000'000);
  ASSERT_EQ(message.sample_size(), 1);
  EXPECT_EQ(message.sample(0).value(0), 30'000'000);
}

TEST_F(ProfileBuilderTest, CallersAreInsideTheirCallsAndTheInnermostFrameIsExact) {
  window_.images = {Image(0x400000)};
  Add(0, {}, {0x400100, 0x400200});
  const Message message = Built();
  ASSERT_EQ(message.sample(0).location_id_size(), 2);
  EXPECT_EQ(message.location(static_cast<int>(message.sample(0).location_id(0)) - 1).address(),
            0x400100u);
  EXPECT_EQ(message.location(static_cast<int>(message.sample(0).location_id(1)) - 1).address(),
            0x4001ffu);
  EXPECT_EQ(Name(message, message.sample(0).location_id(1)), "app+0x11ff");
}

TEST_F(ProfileBuilderTest, OrdersMainProgramFirstAndKernelLast) {
  window_.images = {Image(0x400000)};
  Add(0, {0xffffffff81000010}, {0x10010, 0x400300, 0x400200});
  const Message message = Built();
  ASSERT_EQ(message.mapping_size(), 3);
  const auto name = [&message](int i) {
    return message.string_table(static_cast<int>(message.mapping(i).filename()));
  };
  EXPECT_EQ(name(0), "/bin/app");
  EXPECT_EQ(name(1), "/lib/first.so");
  EXPECT_EQ(name(2), "[kernel.kallsyms]");
  EXPECT_EQ(message.mapping(0).file_offset(), 0x1000u);
  for (int i = 1; i < message.location_size(); ++i) {
    const auto& a = message.location(i - 1);
    const auto& b = message.location(i);
    EXPECT_LE(std::pair(a.mapping_id(), a.address()), std::pair(b.mapping_id(), b.address()));
  }
}

TEST_F(ProfileBuilderTest, ProcessesOfOneProgramShareLocationsAndSamples) {
  window_.images = {Image(0x400000), Image(0x7000000)};
  Add(0, {}, {0x400100, 0x400200});
  Add(1, {}, {0x7000100, 0x7000200}, 2);
  const Message message = Built();
  EXPECT_EQ(message.mapping_size(), 1);
  EXPECT_EQ(message.location_size(), 2);
  ASSERT_EQ(message.sample_size(), 1);
  EXPECT_EQ(message.sample(0).value(0), 30'000'000);
}

TEST_F(ProfileBuilderTest, SamplesOfThreadsThatAreToldApartHaveTheirNamesAndIds) {
  window_.images = {Image(0x400000)};
  window_.threads = {{.id = 12, .name = "writer"}, {.id = 11, .name = "reader"}, {.name = "other"}};
  const Frames user = {0x400100, 0x400200};
  for (const uint32_t thread : {0u, 1u, 1u, 2u, kNoThread})
    AddOfThread(thread, user);
  const Message message = Built();
  std::map<std::string, int64_t> values;
  for (const auto& sample : message.sample()) {
    std::string labels;
    for (const auto& label : sample.label()) {
      labels += message.string_table(static_cast<int>(label.key())) + "=" +
                message.string_table(static_cast<int>(label.str())) + " ";
    }
    values[labels] += sample.value(0);
  }
  EXPECT_EQ(values,
            (std::map<std::string, int64_t>{{"", 10'000'000},
                                            {"thread_name=other ", 10'000'000},
                                            {"thread_name=reader thread_id=11 ", 20'000'000},
                                            {"thread_name=writer thread_id=12 ", 10'000'000}}));
}

TEST_F(ProfileBuilderTest, SamplesAreOrderedFromTheRoot) {
  window_.images = {Image(0x400000)};
  Add(0, {}, {0x400100, 0x400300});
  Add(0, {}, {0x400180, 0x400200});
  Add(0, {}, {0x400190, 0x400300});
  const Message message = Built();
  ASSERT_EQ(message.sample_size(), 3);
  std::vector<uint64_t> roots;
  for (const auto& sample : message.sample())
    roots.push_back(sample.location_id(1));
  EXPECT_TRUE(std::is_sorted(roots.begin(), roots.end()));
}

TEST_F(ProfileBuilderTest, IsTheSameWhateverTheOrderOfSamples) {
  window_.images = {Image(0x400000)};
  Add(0, {0xffffffff81000010}, {0x400300});
  Add(0, {}, {0x400100, 0x10010});
  const Message first = Built();
  window_.Clear();
  window_.images = {Image(0x400000)};
  Add(0, {}, {0x400100, 0x10010});
  Add(0, {0xffffffff81000010}, {0x400300});
  const Message second = Built();
  ASSERT_EQ(first.location_size(), second.location_size());
  for (int i = 0; i < first.location_size(); ++i)
    EXPECT_EQ(first.location(i).address(), second.location(i).address());
  for (int i = 0; i < first.sample_size(); ++i)
    EXPECT_EQ(first.sample(i).SerializeAsString(), second.sample(i).SerializeAsString());
}

TEST_F(ProfileBuilderTest, FramesWithoutMappingOrImageAreKept) {
  window_.images = {Image(0x400000), nullptr};
  Add(0, {}, {0x999999});
  Add(1, {}, {0x400100});
  Add(kNoImage, {0xffffffff81000010}, {});
  Add(0, {}, {0x410010});
  const Message message = Built();
  EXPECT_EQ(message.sample_size(), 4);
  std::set<std::string> names;
  for (const auto& location : message.location())
    names.insert(Name(message, location.id()));
  EXPECT_TRUE(names.contains("[unknown]"));
  EXPECT_TRUE(names.contains("[anonymous]"));
}

TEST_F(ProfileBuilderTest, IsWhatLibprotobufWouldWrite) {
  window_.images = {Image(0x400000)};
  Add(0, {0xffffffff81000010, 0xffffffff81000100}, {0x400300, 0x10010, 0x410001});
  Add(0, {}, {0x400300});
  const std::string bytes = Encoded();
  Message message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.SerializeAsString(), bytes);
}

TEST_F(ProfileBuilderTest, OpensInGoToolPprof) {
  if (std::system("go version > /dev/null 2>&1") != 0) {
    if (std::getenv("CI") != nullptr) FAIL() << "go is not installed";
    GTEST_SKIP() << "go is not installed";
  }
  window_.images = {Image(0x400000)};
  Add(0, {0xffffffff81000010}, {0x400300, 0x10010}, 7);
  const std::string path =
      ::testing::TempDir() + "ff-builder-" + std::to_string(::getpid()) + ".pb";
  std::ofstream(path) << Encoded();
  FILE* const pipe = ::popen(("go tool pprof -raw " + path + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe))
    output.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0) << output;
  std::remove(path.c_str());
  EXPECT_NE(output.find("PeriodType: cpu nanoseconds"), std::string::npos) << output;
  EXPECT_NE(output.find("70000000: "), std::string::npos) << output;
  EXPECT_NE(output.find("first.so+0xf"), std::string::npos) << output;
}

}  // namespace
}  // namespace flamefleet::agent
