// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/cfi.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/stack/cfi_cursor.h"
#include "agent/stack/cfi_machine.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxCies = 256;        // kept parsed; a linked file has a handful
constexpr size_t kMaxAugmentation = 8;  // letters; "zPLRS" is the longest in use
constexpr size_t kLengthBytes = 4;
constexpr size_t kIdBytes = 4;
constexpr uint64_t kLongForm = 0xffffffff;  // no tool writes it

// Where the two sections differ.
struct Form {
  const char* name;
  uint64_t cie_id;      // what is no distance or offset
  bool id_is_distance;  // of an FDE from itself back to its CIE, else the CIE's offset
  bool ends_at_no_length;
};
constexpr Form kEhFrame = {".eh_frame", 0, true, true};
constexpr Form kDebugFrame = {".debug_frame", 0xffffffff, false, false};

class SectionReader {
 public:
  SectionReader(const Form& form, std::span<const std::byte> section, uint64_t address,
                const CfiVisitor& visit)
      : form_(form),
        section_(reinterpret_cast<const char*>(section.data()), section.size()),
        address_(address),
        visit_(visit) {}

  Status Run() {
    size_t at = 0;
    while (at < section_.size()) {
      CfiCursor reader = At(at);
      const uint64_t length = reader.Fixed(kLengthBytes);
      if (length == 0 && reader.ok() && form_.ends_at_no_length) break;
      const size_t content = at + kLengthBytes;
      if (!reader.ok() || length == kLongForm || length > section_.size() - content) {
        return DataLossError(std::string("read ") + form_.name + ": entry at " +
                             std::to_string(at) + " is too long");
      }
      const uint64_t id = reader.Fixed(kIdBytes);
      if (length > kIdBytes && id != form_.cie_id) ReadFde(content, length, id);
      if (budget_ == 0) {
        return ResourceExhaustedError(std::string("read ") + form_.name + ": over " +
                                      std::to_string(kMaxCfiInstructions) + " instructions");
      }
      at = content + length;
    }
    return OkStatus();
  }

 private:
  CfiCursor At(size_t at) const { return {section_.substr(at), address_ + at}; }

  void ReadFde(size_t content, uint64_t length, uint64_t id) {
    const uint64_t cie_at = form_.id_is_distance ? content - id : id;  // wraps, if it is damaged
    if (cie_at >= section_.size()) return;
    const CfiEntryHead* const cie = FindCie(cie_at);
    if (cie == nullptr) return;
    const size_t at = content + kIdBytes;
    CfiCursor reader(section_.substr(at, length - kIdBytes), address_ + at);
    const uint64_t start = reader.Pointer(cie->pointer_encoding);
    const uint64_t size = reader.Value(cie->pointer_encoding & 0x0f);
    if (cie->has_augmentation_data) reader.Block(reader.Unsigned());
    // A function that the linker dropped begins at 0.
    if (!reader.ok() || start == 0 || size == 0 || start + size < start) return;
    rows_.clear();
    CfiMachine machine(*cie, &budget_);
    machine.Begin(start, start + size, &rows_);
    if (machine.Run(reader)) visit_(start, start + size, rows_);
  }

  // Null when it cannot be understood.
  const CfiEntryHead* FindCie(size_t at) {
    if (const auto found = cies_.find(at); found != cies_.end())
      return found->second ? &*found->second : nullptr;
    if (cies_.size() == kMaxCies) cies_.clear();
    const std::optional<CfiEntryHead>& cie = cies_[at] = ReadCie(at);
    return cie ? &*cie : nullptr;
  }

  std::optional<CfiEntryHead> ReadCie(size_t at) {
    CfiCursor header = At(at);
    CfiCursor reader(header.Block(header.Fixed(kLengthBytes)), address_ + at + kLengthBytes);
    if (reader.Fixed(kIdBytes) != form_.cie_id || !reader.ok()) return std::nullopt;
    const uint8_t version = reader.Byte();
    if (version != 1 && version != 3 && version != 4) return std::nullopt;
    const std::string_view augmentation = reader.Text();
    if (augmentation.size() > kMaxAugmentation) return std::nullopt;
    // Size of an address, and of a segment's number.
    if (version == 4 && (reader.Byte() != sizeof(uint64_t) || reader.Byte() != 0))
      return std::nullopt;
    CfiEntryHead cie;
    cie.code_align = static_cast<int64_t>(reader.Unsigned());
    cie.data_align = reader.Signed();
    const uint64_t return_column = version == 1 ? reader.Byte() : reader.Unsigned();
    for (const CfiRegisters* const registers : {&kCfiX86_64, &kCfiAarch64}) {
      if (return_column == registers->return_address) cie.initial.registers = registers;
    }
    if (cie.initial.registers == nullptr) return std::nullopt;
    if (!ReadAugmentation(augmentation, &reader, &cie) || !reader.ok()) return std::nullopt;
    CfiMachine machine(cie, &budget_);
    if (!machine.Run(reader)) return std::nullopt;
    cie.initial = machine.state();
    return cie;
  }

  static bool ReadAugmentation(std::string_view augmentation, CfiCursor* reader,
                               CfiEntryHead* cie) {
    if (augmentation.empty()) return true;
    if (augmentation.front() != 'z') return false;
    cie->has_augmentation_data = true;
    const uint64_t size = reader->Unsigned();
    const size_t start = reader->at();
    for (const char c : augmentation.substr(1)) {
      if (c == 'R') {
        cie->pointer_encoding = reader->Byte();
      } else if (c == 'L') {
        reader->Byte();
      } else if (c == 'P') {
        reader->Value(reader->Byte() & 0x0f);
      } else if (c == 'S') {
        cie->initial.is_signal_frame = true;
      } else if (c != 'B') {  // B: signed with the second key
        return false;
      }
    }
    const size_t used = reader->at() - start;
    if (used > size) return false;
    reader->Block(size - used);
    return true;
  }

  const Form& form_;
  const std::string_view section_;
  const uint64_t address_;
  const CfiVisitor& visit_;
  std::unordered_map<size_t, std::optional<CfiEntryHead>> cies_;  // by offset
  std::vector<CfiRow> rows_;
  size_t budget_ = kMaxCfiInstructions;
};

}  // namespace

Status ReadEhFrame(std::span<const std::byte> section, uint64_t section_address,
                   const CfiVisitor& visit) {
  return SectionReader(kEhFrame, section, section_address, visit).Run();
}

Status ReadDebugFrame(std::span<const std::byte> section, const CfiVisitor& visit) {
  return SectionReader(kDebugFrame, section, 0, visit).Run();
}

}  // namespace flamefleet::agent
