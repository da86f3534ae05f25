// SPDX-License-Identifier: Apache-2.0
#include "agent/host/maps.h"

#include <algorithm>
#include <charconv>

namespace flamefleet::agent {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

// Takes fields off the front of a line.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  template <typename T>
  bool Number(int base, T* value) {
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), *value, base);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }

  bool Literal(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool Text(size_t length, std::string_view* text) {
    if (rest_.size() < length) return false;
    *text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }

  std::string_view RestAfterSpaces() const {
    return rest_.substr(std::min(rest_.find_first_not_of(' '), rest_.size()));
  }

 private:
  std::string_view rest_;
};

bool ParseLine(std::string_view line, MapsEntry* entry, bool* executable) {
  Fields fields(line);
  std::string_view permissions;
  const bool ok = fields.Number(16, &entry->start) && fields.Literal('-') &&
                  fields.Number(16, &entry->end) && fields.Literal(' ') &&
                  fields.Text(4, &permissions) && fields.Literal(' ') &&
                  fields.Number(16, &entry->offset) && fields.Literal(' ') &&
                  fields.Number(16, &entry->device_major) && fields.Literal(':') &&
                  fields.Number(16, &entry->device_minor) && fields.Literal(' ') &&
                  fields.Number(10, &entry->inode) && entry->start < entry->end;
  if (!ok) return false;
  *executable = permissions[2] == 'x';
  std::string_view path = fields.RestAfterSpaces();
  if (path.ends_with(kDeleted)) {
    entry->deleted = true;
    path.remove_suffix(kDeleted.size());
  }
  entry->path = path;
  return true;
}

}  // namespace

Result<std::vector<MapsEntry>> ParseMaps(std::string_view text) {
  std::vector<MapsEntry> entries;
  while (!text.empty() && entries.size() < kMaxMappings) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    MapsEntry entry;
    bool executable = false;
    if (!ParseLine(line, &entry, &executable)) {
      constexpr size_t kShown = 100;
      return InvalidArgumentError("parse maps: bad line \"" + std::string(line.substr(0, kShown)) +
                                  "\"");
    }
    const bool is_file = entry.inode != 0 && !entry.deleted;
    if (executable && (is_file || entries.size() < kMaxMappings - kMappingsForFiles))
      entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace flamefleet::agent
