// SPDX-License-Identifier: Apache-2.0
#include "agent/push/push_request.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/wire.h"

namespace flamefleet::agent {
namespace {

// Numbers of the fields, in proto/pyroscope/push.proto.
constexpr char kRequestSeries = 1;
constexpr char kSeriesLabels = 1;
constexpr char kSeriesSamples = 2;
constexpr char kLabelName = 1;
constexpr char kLabelValue = 2;
constexpr char kSampleProfile = 1;

size_t VarintSize(size_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= kVarintBits)
    ++size;
  return size;
}

// Of a field with that many bytes; its number is below 16.
size_t FieldSize(size_t bytes) {
  return 1 + VarintSize(bytes) + bytes;
}

// The head of a field; its bytes follow.
void PutHead(char number, size_t bytes, std::string* out) {
  constexpr char kBytes = 2;  // wire type: a length comes first
  out->push_back(static_cast<char>(number << 3 | kBytes));
  PutVarint(bytes, out);
}

void Put(char number, std::string_view bytes, std::string* out) {
  PutHead(number, bytes.size(), out);
  out->append(bytes);
}

// All labels, by name; those that we add stand for any others of their names.
template <typename Visit>
void ForEachLabel(const FinishedProfile& profile, Visit visit) {
  const std::pair<std::string_view, std::string_view> own[] = {
      {"__delta__", "false"}, {"__name__", MetricName(profile.collection.type)}};
  const auto* next = std::begin(own);
  for (const auto& [name, value] : profile.labels) {
    bool is_own = false;
    for (; next != std::end(own) && next->first <= name; ++next) {
      visit(next->first, next->second);
      is_own = next->first == name;
    }
    if (!is_own) visit(name, value);
  }
  for (; next != std::end(own); ++next)
    visit(next->first, next->second);
}

size_t LabelSize(std::string_view name, std::string_view value) {
  return FieldSize(name.size()) + FieldSize(value.size());
}

}  // namespace

// By hand: one allocation at most, where the messages of the library need three dozen.
void EncodePushRequest(const FinishedProfile& profile, std::string* out) {
  const size_t sample = FieldSize(profile.pprof.size());
  size_t series = FieldSize(sample);
  ForEachLabel(profile, [&series](std::string_view name, std::string_view value) {
    series += FieldSize(LabelSize(name, value));
  });
  out->clear();
  out->reserve(FieldSize(series));
  PutHead(kRequestSeries, series, out);
  ForEachLabel(profile, [out](std::string_view name, std::string_view value) {
    PutHead(kSeriesLabels, LabelSize(name, value), out);
    Put(kLabelName, name, out);
    Put(kLabelValue, value, out);
  });
  PutHead(kSeriesSamples, sample, out);
  Put(kSampleProfile, profile.pprof, out);
}

}  // namespace flamefleet::agent
