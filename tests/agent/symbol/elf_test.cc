// SPDX-License-Identifier: Apache-2.0
// The ELF reader against binutils (nm, readelf) on real files, and against damaged ones.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbol_request.h"
#include "base/fd.h"

namespace flamefleet::agent {
namespace {

std::string RunCommand(const std::string& command) {
  std::string output;
  FILE* const pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe))
    output.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

std::string ThisProgram() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

std::string Libc() {
  return std::filesystem::canonical("/lib/x86_64-linux-gnu/libc.so.6");
}

struct NmSymbol {
  uint64_t address = 0;
  uint64_t size = 0;
  std::string name;
};

// Functions with a size, as nm sees them.
std::vector<NmSymbol> Nm(const std::string& path, const std::string& options) {
  std::vector<NmSymbol> symbols;
  std::istringstream lines(RunCommand("nm -S --defined-only " + options + " " + path));
  std::string line;
  while (std::getline(lines, line)) {
    NmSymbol symbol;
    char type = 0;
    char name[8192];
    if (std::sscanf(line.c_str(), "%lx %lx %c %8191s", &symbol.address, &symbol.size, &type,
                    name) != 4)
      continue;
    if (std::string_view("tTwWi").find(type) == std::string_view::npos) continue;
    symbol.name = name;
    symbol.name.resize(std::min(symbol.name.find('@'), symbol.name.size()));  // its version
    symbols.push_back(symbol);
  }
  return symbols;
}

// What the parser says of the file, without a process of its own.
Result<ProgramSymbols> ReadSymbols(int fd) {
  const int files[] = {fd};
  FF_ASSIGN_OR_RETURN(const std::string encoded, AnswerSymbols(files, ""));
  return DecodeSymbols(encoded);
}

std::optional<uint32_t> NameAt(const SymbolTable& table, uint64_t address) {
  const std::optional<SymbolTable::Function> function = table.Find(address);
  return function ? function->name : std::nullopt;
}

// Every address of a function must be named as one of nm's functions that hold it.
void ExpectNamesOfNm(const std::string& path, const std::string& options) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int files[] = {fd.get()};
  const Result<ProgramSymbols> program = ReadSymbols(fd.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const SymbolTable& table = program->table;
  const std::vector<NmSymbol> symbols = Nm(path, options);
  ASSERT_GT(symbols.size(), 100u);
  std::map<uint64_t, std::set<std::string>> by_address;
  for (const NmSymbol& symbol : symbols)
    by_address[symbol.address].insert(symbol.name);
  for (const NmSymbol& symbol : symbols) {
    if (symbol.size == 0) continue;
    const std::optional<uint32_t> first = NameAt(table, symbol.address);
    ASSERT_TRUE(first) << symbol.name;
    const Result<std::string> name = table.ReadName(files, *first);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_TRUE(by_address[symbol.address].contains(*name)) << *name << " for " << symbol.name;
    EXPECT_TRUE(NameAt(table, symbol.address + symbol.size - 1)) << symbol.name;
  }
}

TEST(SymbolTable, NamesEveryFunctionOfThisProgramAsNmDoes) {
  ExpectNamesOfNm(ThisProgram(), "");
}

TEST(SymbolTable, NamesEveryFunctionOfAStrippedLibraryAsNmDoes) {
  ExpectNamesOfNm(Libc(), "-D");
}

TEST(SymbolTable, HasNoNameWhereNoFunctionIs) {
  const std::string path = Libc();  // stripped: between exported functions there are unnamed ones
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const SymbolTable table = std::move(ReadSymbols(fd.get())->table);
  std::vector<NmSymbol> symbols = Nm(path, "-D");
  std::ranges::sort(symbols, {}, &NmSymbol::address);
  uint64_t covered = 0;
  size_t gaps = 0;
  for (const NmSymbol& symbol : symbols) {
    if (covered != 0 && symbol.address > covered) {
      EXPECT_FALSE(NameAt(table, covered)) << std::hex << covered;
      EXPECT_FALSE(NameAt(table, symbol.address - 1)) << std::hex << symbol.address;
      ++gaps;
    }
    if (symbol.size > 0) covered = std::max(covered, symbol.address + symbol.size);
  }
  EXPECT_GT(gaps, 100u);
  EXPECT_FALSE(table.Find(0));
  EXPECT_FALSE(table.Find(UINT64_MAX));
}

TEST(ElfFile, HasTheBuildIdThatReadelfPrints) {
  for (const std::string& path : {ThisProgram(), Libc()}) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const Result<ElfFile> elf = ReadElfFile(fd.get());
    ASSERT_TRUE(elf.ok()) << elf.status();
    ASSERT_FALSE(elf->build_id.empty());
    EXPECT_NE(RunCommand("readelf -n " + path).find("Build ID: " + elf->build_id + "\n"),
              std::string::npos);
  }
}

TEST(ProgramSymbols, MapsOffsetsToAddressesBySegment) {
  ProgramSymbols elf;
  elf.segments = {{.offset = 0, .size = 0x1000, .address = 0x400000},
                  {.offset = 0x1000, .size = 0x500, .address = 0x402000}};
  EXPECT_EQ(elf.AddressOfOffset(0x10), 0x400010u);
  EXPECT_EQ(elf.AddressOfOffset(0x1010), 0x402010u);
  EXPECT_FALSE(elf.AddressOfOffset(0x1500));
}

// A file in memory with these bytes.
UniqueFd FileOf(const std::string& bytes) {
  UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

// Reads all that can be read of it; must neither crash nor hang, whatever it says.
void ReadAll(const std::string& bytes) {
  const UniqueFd fd = FileOf(bytes);
  const int files[] = {fd.get()};
  const Result<ProgramSymbols> program = ReadSymbols(fd.get());
  if (!program.ok()) return;
  for (uint64_t address = 0; address < 0x10000; address += 0x123) {
    program->AddressOfOffset(address).value_or(0);
    if (const std::optional<uint32_t> name = NameAt(program->table, address))
      program->table.ReadName(files, *name).IgnoreError();
  }
}

std::string SmallElf() {
  const std::string path = std::filesystem::canonical("/lib/x86_64-linux-gnu/libdl.so.2");
  return *ReadFile(path, 1 << 20);
}

TEST(ElfFile, TruncatedFilesAreRefusedOrRead) {
  const std::string whole = SmallElf();
  for (size_t size = 0; size < whole.size(); size += 61)
    ReadAll(whole.substr(0, size));
  EXPECT_EQ(ReadElfFile(FileOf("").get()).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(ReadElfFile(FileOf(std::string(64, 'x')).get()).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(ElfFile, MutatedFilesAreRefusedOrRead) {
  const std::string whole = SmallElf();
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    // Headers are where one byte changes most: the file's, and the sections' at its end.
    for (int i = 0; i < 4; ++i) {
      const size_t at = random() % 2 == 0 ? random() % 1024 : bytes.size() - 1 - random() % 2048;
      bytes[at] = static_cast<char>(random());
    }
    ReadAll(bytes);
  }
}

TEST(ElfFile, BuildIdOfDamagedNotesIsEmpty) {
  EXPECT_EQ(BuildIdOfNotes(""), "");
  EXPECT_EQ(BuildIdOfNotes(std::string(12, '\xff')), "");
  EXPECT_EQ(BuildIdOfNotes(std::string("\4\0\0\0\x7f\0\0\0\3\0\0\0GNU\0ab", 18)), "");
  EXPECT_EQ(BuildIdOfNotes(std::string("\4\0\0\0\2\0\0\0\3\0\0\0GNU\0\xab\x01\0\0", 20)), "ab01");
}

}  // namespace
}  // namespace flamefleet::agent
