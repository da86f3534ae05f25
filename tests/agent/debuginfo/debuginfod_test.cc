// SPDX-License-Identifier: Apache-2.0
// Against elfutils' own debuginfod, and a server of ours for what that never answers.
#include "agent/debuginfo/debuginfod.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <string>

#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbolizer.h"
#include "base/http/client.h"
#include "base/http/server.h"
#include "tests/support/child_process.h"
#include "tests/support/command.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

constexpr char kBuildId[] = "0123456789abcdef0123456789abcdef01234567";

class DebuginfodTest : public ::testing::Test {
 protected:
  // What was counted as `result`.
  double Count(const std::string& result) {
    return metrics_
        .Counter("flamefleet_agent_debug_files_total",
                 "Debug files that debuginfod servers were asked for, by result.",
                 {{"result", result}})
        .Value();
  }

  double Bytes() {
    return metrics_
        .Gauge("flamefleet_agent_debug_file_bytes",
               "Disk that the debug files of debuginfod servers take.")
        .Value();
  }

  TempDir directory_;
  const std::string cache_ = directory_.path() + "/cache";
  Metrics metrics_;
};

// A program without symbols, and elfutils' server of its debug file.
class ElfutilsServer {
 public:
  explicit ElfutilsServer(const std::string& directory) : program_(directory + "/program") {
    const std::string files = directory + "/files";
    std::filesystem::create_directory(files);
    const std::string debug = files + "/program.debug";
    EXPECT_EQ(RunCommand({"objcopy", "--only-keep-debug", FF_PROGRAM, debug}).exit_code, 0);
    EXPECT_EQ(RunCommand({"strip", "-o", program_, FF_PROGRAM}).exit_code, 0);
    std::random_device random;
    const int port = 20'000 + static_cast<int>(random() % 10'000);
    url_ = "http://127.0.0.1:" + std::to_string(port);
    server_.emplace(std::vector<std::string>{"sh", "-c",
                                             "exec debuginfod -F -d :memory: -p " +
                                                 std::to_string(port) + " " + files +
                                                 " >/dev/null 2>&1"});
    const UniqueFd fd(::open(program_.c_str(), O_RDONLY | O_CLOEXEC));
    elf_ = *ReadElfFile(fd.get());
    const auto http = *HttpClient::Create({.base_url = url_});
    EXPECT_TRUE(WaitUntil([&] {
      const auto answer = http->Send({.target = "/buildid/" + elf_.build_id + "/debuginfo"});
      return answer.ok() && answer->status == 200;
    })) << "debuginfod does not serve "
        << debug;
  }

  const std::string& program() const { return program_; }
  const std::string& url() const { return url_; }
  const ElfFile& elf() const { return elf_; }

 private:
  const std::string program_;
  std::string url_;
  std::optional<ChildProcess> server_;
  ElfFile elf_;
};

// Where `main` is in the file.
uint64_t OffsetOfMain(const ElfFile& elf) {
  const CommandResult symbols = RunCommand({"nm", FF_PROGRAM});
  const size_t at = symbols.out.find(" T main\n");
  EXPECT_NE(at, std::string::npos);
  const uint64_t address = std::stoull(symbols.out.substr(at - 16, 16), nullptr, 16);
  for (const ElfFile::Segment& segment : elf.segments) {
    if (address >= segment.address && address - segment.address < segment.size)
      return address - segment.address + segment.offset;
  }
  return 0;
}

TEST_F(DebuginfodTest, AStrippedProgramHasNamesAndLinesOnceItsDebugFileHasCome) {
  const ElfutilsServer server(directory_.path());
  const auto root = std::make_shared<const RootDirectory>(*OpenFile("/", O_PATH));
  const ImageMapping mapping{
      .start = 0,
      .end = UINT64_MAX,
      .path = server.program(),
      .file = std::make_shared<const MappedFile>(*root->OpenFile(server.program()))};
  const ProcessImage image{.root = root};
  const uint64_t main_offset = OffsetOfMain(server.elf());

  Debuginfod debuginfod(cache_, &metrics_);
  debuginfod.SetServers({server.url()});
  Symbolizer symbolizer("/proc", 64 << 20);
  symbolizer.SetDebugFileFinder([&](const std::string& id) { return debuginfod.Find(id); });
  EXPECT_TRUE(symbolizer.UserName(image, mapping, main_offset).system_name.empty());
  // The rest of the agent sees it as this test does: window after window.
  EXPECT_TRUE(WaitUntil([&] {
    symbolizer.EndWindow();
    return symbolizer.UserName(image, mapping, main_offset).name == "main";
  }));
  EXPECT_EQ(Count("fetched"), 1);
  symbolizer.WantLines(image, mapping, main_offset);
  symbolizer.ResolveLines();
  EXPECT_TRUE(
      symbolizer.UserFrames(image, mapping, main_offset).back().file.ends_with("lines_program.cc"));

  // Another run finds it on disk, whatever its servers have.
  Debuginfod again(cache_, &metrics_);
  again.SetServers({"http://127.0.0.1:1"});
  EXPECT_NE(again.Find(server.elf().build_id), nullptr);
}

// A server of which a test says what it answers.
class DebuginfodAnswers : public DebuginfodTest {
 protected:
  DebuginfodAnswers() {
    server_ = *HttpServer::Create({.listen = "127.0.0.1:0"}, [this](const HttpServerRequest& got) {
      ++requests_;
      last_path_ = got.path;
      return answer_;
    });
  }

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  HttpServerResponse answer_;  // set before the first request
  std::atomic<int> requests_ = 0;
  std::string last_path_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(DebuginfodAnswers, WhatNoServerHasIsNotAskedForAgain) {
  answer_.status = 404;
  Debuginfod debuginfod(cache_, &metrics_);
  debuginfod.SetServers({Url() + "/base/"});
  EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  ASSERT_TRUE(WaitUntil([&] { return Count("missing") == 1; }));
  EXPECT_EQ(last_path_, std::string("/base/buildid/") + kBuildId + "/debuginfo");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  EXPECT_EQ(debuginfod.Find("ab"), nullptr);  // the thread has come past any other
  ASSERT_TRUE(WaitUntil([&] { return Count("missing") == 2; }));
  EXPECT_EQ(requests_, 2);
  // Others may have it.
  debuginfod.SetServers({Url()});
  debuginfod.Find(kBuildId);
  EXPECT_TRUE(WaitUntil([&] { return Count("missing") == 3; }));
}

TEST_F(DebuginfodAnswers, AFileThatSomebodyRemovedIsNoLongerCounted) {
  answer_.body =
      "\x7f"
      "ELF and so on";
  Debuginfod debuginfod(cache_, &metrics_);
  debuginfod.SetServers({Url()});
  EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  ASSERT_TRUE(WaitUntil([&] { return Count("fetched") == 1; }));
  EXPECT_NE(debuginfod.Find(kBuildId), nullptr);
  EXPECT_EQ(Bytes(), static_cast<double>(answer_.body.size()));
  std::filesystem::remove(cache_ + "/" + kBuildId + ".debug");
  EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  EXPECT_EQ(Bytes(), 0);
}

TEST_F(DebuginfodAnswers, WhatIsNoElfFileIsNotKept) {
  answer_.body = "<html>welcome</html>";
  Debuginfod debuginfod(cache_, &metrics_);
  debuginfod.SetServers({Url()});
  EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  ASSERT_TRUE(WaitUntil([&] { return Count("failed") == 1; }));
  EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  EXPECT_FALSE(std::filesystem::exists(cache_ + "/" + kBuildId + ".debug"));
}

TEST_F(DebuginfodAnswers, WithoutServersNothingIsAskedFor) {
  Debuginfod debuginfod(cache_, &metrics_);
  EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  debuginfod.SetServers({});
  EXPECT_EQ(debuginfod.Find(kBuildId), nullptr);
  EXPECT_FALSE(std::filesystem::exists(cache_));
}

}  // namespace
}  // namespace flamefleet::agent
