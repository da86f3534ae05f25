// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/jit_dump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string>

#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

template <typename T>
std::string Raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Header(uint32_t version = 1, uint32_t machine = 62) {
  constexpr uint32_t kMagic = 0x4A695444;
  constexpr uint32_t kSize = 40;
  return Raw(kMagic) + Raw(version) + Raw(kSize) + Raw(machine) + Raw(uint32_t{0}) +
         Raw(uint32_t{1}) + Raw(uint64_t{0}) + Raw(uint64_t{0});
}

std::string Record(uint32_t id, const std::string& content) {
  return Raw(id) + Raw(static_cast<uint32_t>(16 + content.size())) + Raw(uint64_t{7}) + content;
}

std::string Load(uint64_t address, const std::string& name, const std::string& code) {
  return Record(0, Raw(uint32_t{1}) + Raw(uint32_t{1}) + Raw(address) + Raw(address) +
                       Raw(uint64_t{code.size()}) + Raw(uint64_t{0}) + name + '\0' + code);
}

std::string Move(uint64_t from, uint64_t to, uint64_t size) {
  return Record(1, Raw(uint32_t{1}) + Raw(uint32_t{1}) + Raw(to) + Raw(from) + Raw(to) + Raw(size) +
                       Raw(uint64_t{0}));
}

class JitDumpTest : public ::testing::Test {
 protected:
  void Write(const std::string& bytes) {
    const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    ASSERT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  Status Update() {
    if (!file_.fd.ok()) file_.fd.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return dump_.Update(file_, parser_.get());
  }
  std::string NameAt(uint64_t address) { return std::string(dump_.Find(address)); }

  TempDir directory_;
  std::string path_ = directory_.path() + "/jit-1.dump";
  std::shared_ptr<ParserProcess> parser_ = ParserProcess::Installed();
  MappedFile file_;  // opened once, as a mapped file is
  JitDump dump_;
};

TEST_F(JitDumpTest, NamesWhatWasLoadedAndNothingElse) {
  const std::string debug_info = Record(2, Raw(uint64_t{0x5000}) + Raw(uint64_t{0}));
  Write(Header() + Load(0x5000, "JS:~f /a.js:1", std::string(16, 'c')) + debug_info +
        Load(0x6000, "g", std::string(100'000, '\0')) + Load(0x30000, "", "code"));
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x4fff), "");
  EXPECT_EQ(NameAt(0x5000), "JS:~f /a.js:1");
  EXPECT_EQ(NameAt(0x500f), "JS:~f /a.js:1");
  EXPECT_EQ(NameAt(0x5010), "");
  EXPECT_EQ(NameAt(0x6000 + 99'999), "g");
  EXPECT_EQ(dump_.size(), 2u);
}

TEST_F(JitDumpTest, ALaterRecordWinsAndCodeThatMovedKeepsItsName) {
  Write(Header() + Load(0x1000, "a", std::string(256, 'c')) +
        Load(0x1080, "b", std::string(16, 'c')) + Move(0x1000, 0x9000, 128));
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "a");
  EXPECT_EQ(NameAt(0x1080), "b");
  EXPECT_EQ(NameAt(0x1090), "") << "what was under it is gone";
  EXPECT_EQ(NameAt(0x907f), "a");
  EXPECT_EQ(NameAt(0x9080), "");
}

TEST_F(JitDumpTest, ReadsOnlyWhatWasAppendedAndWaitsForTheEndOfARecord) {
  const std::string second = Load(0x2000, "second", "code");
  Write(Header() + Load(0x1000, "first", "code") + second.substr(0, 50));
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(dump_.size(), 1u);
  Write(second.substr(50));
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "first");
  EXPECT_EQ(NameAt(0x2000), "second");
}

TEST_F(JitDumpTest, OfAnotherFormOrMachineNothingIsRead) {
  Write(Header(1, 183) + Load(0x1000, "arm", "code"));
  EXPECT_EQ(Update().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Update().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(dump_.size(), 0u);
  EXPECT_EQ(parser_->counts().requests, 1u) << "it is not asked for again";
}

TEST_F(JitDumpTest, AnotherFileAndOneThatBeganAnewAreReadFromTheirStart) {
  Write(Header(1, 183));
  EXPECT_EQ(Update().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  file_ = {.inode = 1};
  Write(Header() + Load(0x1000, "first", "code") + Load(0x2000, "second", "code"));
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x2000), "second");
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  Write(Header() + Load(0x1000, "anew", "code"));
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "anew");
  EXPECT_EQ(NameAt(0x2000), "");
}

TEST_F(JitDumpTest, ARecordShorterThanItsHeaderEndsAllReading) {
  Write(Header() + Load(0x1000, "first", "code"));
  ASSERT_TRUE(Update().ok());
  Write(Raw(uint32_t{3}) + Raw(uint32_t{4}) + Raw(uint64_t{0}));
  EXPECT_EQ(Update().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(NameAt(0x1000), "first");
}

TEST_F(JitDumpTest, AnEndOfZerosIsWaitedFor) {
  Write(Header() + Load(0x1000, "first", "code"));
  const UniqueFd fd(::open(path_.c_str(), O_WRONLY));
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 40), 0);  // 1 TB, sparse
  EXPECT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "first");
}

TEST_F(JitDumpTest, ManyRecordsAreReadInBoundedMemoryOneAfterTheOther) {
  std::string many = Header();
  const uint64_t count = kMaxJitRecordsPerRequest * 2 + 10;
  for (uint64_t i = 0; i < count; ++i)
    many += Load(0x100000 + i * 16, std::string(40, 'n') + std::to_string(i), "code");
  Write(many);
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x100000 + (count - 1) * 16), std::string(40, 'n') + std::to_string(count - 1));
  EXPECT_LE(dump_.Bytes(), 8u << 20);
}

TEST_F(JitDumpTest, RubbishIsHarmless) {
  std::mt19937 random(7);
  std::string rubbish(1 << 20, '\0');
  for (char& c : rubbish)
    c = static_cast<char>(random());
  Write(Header() + Load(0x1000, "good", "code") + rubbish);
  Update().IgnoreError();
  EXPECT_EQ(parser_->counts().deaths, 0u);
}

}  // namespace
}  // namespace flamefleet::agent
