// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "agent/symbol/demangle.h"
#include "agent/symbol/kernel_symbols.h"
#include "agent/symbol/symbolizer.h"

namespace flamefleet::agent {
namespace {

TEST(Demangle, MakesCppReadableWithoutParameters) {
  EXPECT_EQ(Demangle("_ZN4demo4WorkIlE3RunEl"), "demo::Work<long>::Run");
  EXPECT_EQ(Demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back");
  EXPECT_EQ(Demangle("_Z3foov"), "foo");
}

TEST(Demangle, MakesRustReadable) {
  EXPECT_EQ(Demangle("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(Demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad");
}

TEST(Demangle, LeavesOtherNamesAlone) {
  for (const char* const name :
       {"", "main", "_start", "runtime.mallocgc", "_Z", "_ZZZZZ", "_R", "_Zx\x01"})
    EXPECT_EQ(Demangle(name), name);
}

TEST(Demangle, HostileNamesStayAsTheyAre) {
  // Each S_ stands for all that came before it: the text doubles with each.
  std::string bomb = "_Z1fI";
  for (int i = 0; i < 40; ++i)
    bomb += "St4pairI";
  bomb += "iiE";
  for (int i = 0; i < 39; ++i)
    bomb += "S" + std::string(1, static_cast<char>('0' + i % 10)) + "_E";
  bomb += "Ev";
  EXPECT_LE(Demangle(bomb).size(), std::max(bomb.size(), kMaxDemangledBytes));
  const std::string doubling = [] {
    std::string name = "_Z1fPFvvE";
    std::string id = "S_";
    for (int i = 0; i < 35; ++i) {
      name += "PF" + id + id + "E";
      id = i < 10 ? "S" + std::to_string(i) + "_"
                  : "S" + std::string(1, static_cast<char>('A' + i - 10)) + "_";
    }
    return name;
  }();
  EXPECT_LE(Demangle(doubling).size(), kMaxDemangledBytes);
  const std::string nested = "_Z1f" + std::string(3000, 'P') + "v";
  EXPECT_LE(Demangle(nested).size(), kMaxDemangledBytes);
  const std::string long_name = "_Z" + std::string(10'000, 'P');
  EXPECT_EQ(Demangle(long_name), long_name);
}

TEST(KernelSymbols, FindsTheFunctionAtOrBeforeAnAddress) {
  const Result<KernelSymbols> symbols = KernelSymbols::Parse(
      "0000000000000000 A per_cpu_start\n"
      "ffffffff81000200 t second\n"
      "ffffffff81000000 T _text\n"
      "ffffffff81000000 T startup_64\n"
      "ffffffff82000000 D some_data\n"
      "ffffffffc0001000 t in_module\t[mod]\n");
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  EXPECT_EQ(symbols->Find(0xffffffff80ffffff), "");
  EXPECT_EQ(symbols->Find(0xffffffff81000000), "_text");
  EXPECT_EQ(symbols->Find(0xffffffff810001ff), "_text");
  EXPECT_EQ(symbols->Find(0xffffffff81000200), "second");
  EXPECT_EQ(symbols->Find(0xffffffffc0001fff), "in_module");
  EXPECT_EQ(symbols->Find(0x1000), "");
}

TEST(KernelSymbols, SaysSoWhenTheKernelHidesAddresses) {
  const auto symbols = KernelSymbols::Parse("0000000000000000 T _text\n0000000000000000 t x\n");
  EXPECT_EQ(symbols.status().code(), StatusCode::kPermissionDenied);
}

TEST(KernelSymbols, ReadsAFilePieceByPieceAsItReadsAText) {
  std::string text;
  for (uint64_t i = 0; i < 10'000; ++i) {
    char line[64];
    std::snprintf(line, sizeof(line), "%lx t function_%lu\n", 0xffffffff81000000 + i * 16, i);
    text += line;
  }
  const std::string path = ::testing::TempDir() + "ff-kallsyms-" + std::to_string(::getpid());
  std::ofstream(path) << text;
  const Result<KernelSymbols> read = KernelSymbols::Read(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read.ok()) << read.status();
  for (uint64_t i = 0; i < 10'000; ++i)
    ASSERT_EQ(read->Find(0xffffffff81000000 + i * 16 + 5), "function_" + std::to_string(i));
  EXPECT_EQ(KernelSymbols::Read("/nonexistent").status().code(), StatusCode::kNotFound);
}

TEST(KernelSymbols, RefusesWhatIsNotKallsyms) {
  for (const char* const text : {"x\n", "ffffffff81000000\n", "ffffffff81000000 T\n", "\n"})
    EXPECT_EQ(KernelSymbols::Parse(text).status().code(), StatusCode::kInvalidArgument) << text;
}

const ProcessImage kImage;  // without a root: no debug files, no perf map

// A mapping of the file that holds `function`, as the process table would have it.
ImageMapping MappingOf(const void* function) {
  const auto address = reinterpret_cast<uint64_t>(function);
  const std::string text = *ReadFile("/proc/self/maps", kMaxMapsBytes);
  const std::vector<MapsEntry> maps = *ParseMaps(text);
  for (const MapsEntry& entry : maps) {
    if (address < entry.start || address >= entry.end) continue;
    ImageMapping mapping{
        .start = entry.start, .end = entry.end, .offset = entry.offset, .path = entry.path};
    Result<MappedFile> file = OpenMappedFile("/proc", static_cast<uint32_t>(::getpid()), entry);
    if (file.ok()) mapping.file = std::make_shared<const MappedFile>(*std::move(file));
    return mapping;
  }
  ADD_FAILURE() << "no mapping";
  return {};
}

TEST(Symbolizer, NamesAFunctionOfThisProgram) {
  Symbolizer symbolizer("/proc", 1 << 20);
  const auto address = reinterpret_cast<const void*>(&Demangle);
  const ImageMapping mapping = MappingOf(address);
  const SymbolName& name =
      symbolizer.UserName(kImage, mapping, reinterpret_cast<uint64_t>(address) + 1);
  EXPECT_EQ(name.name.substr(0, name.name.find('[')), "flamefleet::agent::Demangle");
  EXPECT_TRUE(name.system_name.starts_with("_ZN10flamefleet5agent8Demangle"));
  EXPECT_FALSE(symbolizer.BuildId(kImage, mapping).empty());
}

TEST(Symbolizer, NamesTheVdso) {
  Symbolizer symbolizer("/proc", 1 << 20);
  void* const vdso = ::dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(vdso, nullptr);
  const void* const function = ::dlsym(vdso, "__vdso_clock_gettime");
  ASSERT_NE(function, nullptr);
  const std::string name =
      symbolizer.UserName(kImage, MappingOf(function), reinterpret_cast<uint64_t>(function)).name;
  EXPECT_TRUE(name == "__vdso_clock_gettime" || name == "clock_gettime") << name;
}

TEST(Symbolizer, SaysWhereAnUnnamedAddressIs) {
  Symbolizer symbolizer("/proc", 1 << 20);
  const ImageMapping file{
      .start = 0x1000, .end = 0x3000, .offset = 0x500, .path = "/usr/lib/libx.so"};
  EXPECT_EQ(symbolizer.UserName(kImage, file, 0x1010).name, "libx.so+0x510");
  EXPECT_EQ(symbolizer.UserName(kImage, {.start = 0x1000, .end = 0x2000}, 0x1010).name,
            "[anonymous]");
  EXPECT_EQ(
      symbolizer.UserName(kImage, {.start = 0x1000, .end = 0x2000, .path = "[vsyscall]"}, 0x1010)
          .name,
      "[vsyscall]");
  EXPECT_EQ(symbolizer.unnamed_addresses(), 3u);
}

TEST(Symbolizer, EvictsDownToItsLimitAndStillNames) {
  Symbolizer symbolizer("/proc", 1);
  const auto address = reinterpret_cast<const void*>(&Demangle);
  const ImageMapping mapping = MappingOf(address);
  symbolizer.UserName(kImage, mapping, reinterpret_cast<uint64_t>(address));
  EXPECT_GT(symbolizer.Bytes(), 0u);
  symbolizer.EndWindow();
  EXPECT_EQ(symbolizer.Bytes(), 0u);
  EXPECT_NE(symbolizer.UserName(kImage, mapping, reinterpret_cast<uint64_t>(address)).system_name,
            "");
}

TEST(Symbolizer, EqualFilesShareOneTable) {
  Symbolizer symbolizer("/proc", 64 << 20);
  const auto address = reinterpret_cast<const void*>(&Demangle);
  ImageMapping mapping = MappingOf(address);
  symbolizer.UserName(kImage, mapping, reinterpret_cast<uint64_t>(address));
  const size_t once = symbolizer.Bytes();
  // The same bytes as another file: another container's copy.
  const std::string copy = ::testing::TempDir() + "ff-copy-" + std::to_string(::getpid());
  std::filesystem::copy_file("/proc/self/exe", copy,
                             std::filesystem::copy_options::overwrite_existing);
  auto file = std::make_shared<MappedFile>();
  file->fd.reset(::open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  file->size = mapping.file->size;
  file->inode = 1;
  mapping.file = file;
  std::filesystem::remove(copy);
  symbolizer.UserName(kImage, mapping, reinterpret_cast<uint64_t>(address));
  constexpr size_t kNamesOfItsOwn = 4096;
  EXPECT_GT(once, 4 * kNamesOfItsOwn);
  EXPECT_LE(symbolizer.Bytes(), once + kNamesOfItsOwn);
}

}  // namespace
}  // namespace flamefleet::agent
