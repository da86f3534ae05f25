// SPDX-License-Identifier: Apache-2.0
#include "store/ingest/ingest.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/utf8.h"
#include "proto/pyroscope/push.pb.h"
#include "store/ingest/multipart.h"
#include "store/ingest/typed_profile.h"
#include "store/match/time_range.h"

namespace flamefleet::store {
namespace {

constexpr int64_t kDefaultSampleRate = 100;
constexpr int64_t kMaxSampleRate = 1'000'000;
// Of a sample_type_config, which names a handful of types.
constexpr size_t kMaxConfigBytes = 64 << 10;
constexpr char kSpyLabel[] = "pyroscope_spy";

bool IsNameCharacter(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalnum(u) != 0 || c == '_' || c == '.' || c == '/' || u >= 0x80;
}

bool IsName(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return IsNameCharacter(c) || also.find(c) != std::string_view::npos;
  });
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

int64_t SampleRateOf(const std::string& text) {
  int64_t rate = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), rate);
  const bool good = parsed.ec == std::errc() && rate > 0 && rate <= kMaxSampleRate;
  return good ? rate : kDefaultSampleRate;
}

// Stacks as text, root first, into a CPU profile.
class FoldedReader {
 public:
  FoldedReader(const PushLimits& limits, int64_t sample_rate)
      : limits_(limits), period_ns_(kNanosPerSecond / sample_rate) {
    const auto cpu = profile_.strings.Intern("cpu");
    const auto nanoseconds = profile_.strings.Intern("nanoseconds");
    profile_.sample_types = {{cpu, nanoseconds}};
    profile_.period_type = {cpu, nanoseconds};
    profile_.period = period_ns_;
  }

  Status Add(std::string_view stack, int64_t count) {
    if (profile_.samples.size() >= limits_.profile.max_samples) {
      return ResourceExhaustedError("more than " + std::to_string(limits_.profile.max_samples) +
                                    " stacks");
    }
    pprof::Sample sample{.first_location = static_cast<uint32_t>(profile_.sample_locations.size())};
    while (!stack.empty()) {
      const size_t at = stack.rfind(';');
      const size_t begin = at == std::string_view::npos ? 0 : at + 1;
      AddFrame(stack.substr(begin));
      stack = stack.substr(0, begin == 0 ? 0 : at);
      if (++sample.location_count > limits_.profile.max_depth) {
        return ResourceExhaustedError("a stack has more than " +
                                      std::to_string(limits_.profile.max_depth) + " frames");
      }
    }
    profile_.samples.push_back(sample);
    profile_.values.push_back(
        static_cast<int64_t>(static_cast<uint64_t>(count) * static_cast<uint64_t>(period_ns_)));
    return OkStatus();
  }

  pprof::Profile& profile() { return profile_; }

 private:
  void AddFrame(std::string_view name) {
    const uint32_t text = profile_.strings.Intern(name);
    const auto next = static_cast<uint32_t>(profile_.locations.size());
    const auto [it, is_new] = locations_.try_emplace(text, next);
    if (is_new) {
      profile_.functions.push_back({.name = text});
      profile_.lines.push_back({.function = next});
      profile_.locations.push_back({.first_line = next, .line_count = 1});
    }
    profile_.sample_locations.push_back(it->second);
  }

  const PushLimits& limits_;
  const int64_t period_ns_;
  pprof::Profile profile_;
  std::map<uint32_t, uint32_t> locations_;  // by name
};

Status ReadFolded(std::string_view text, bool with_counts, FoldedReader* reader) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto bad = [&](const std::string& what) {
      return InvalidArgumentError("line " + std::to_string(number) + ": " + what);
    };
    if (!IsUtf8(line)) return bad("not UTF-8");
    int64_t count = 1;
    if (with_counts) {
      const size_t space = line.rfind(' ');
      const std::string_view digits = line.substr(space == std::string_view::npos ? 0 : space + 1);
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
      const bool good = space != std::string_view::npos && space > 0 && parsed.ec == std::errc() &&
                        parsed.ptr == digits.data() + digits.size() && count >= 0 &&
                        count <= INT32_MAX;
      if (!good) return bad("want a stack, a space and a count");
      line = line.substr(0, space);
    }
    if (const Status added = reader->Add(line, count); !added.ok()) return added;
  }
  return OkStatus();
}

// The display names of a sample_type_config, by sample type.
Result<std::map<std::string, std::string>> ReadDisplayNames(std::string_view text) {
  if (text.size() > kMaxConfigBytes) {
    return ResourceExhaustedError("sample_type_config is larger than " +
                                  std::to_string(kMaxConfigBytes) + " bytes");
  }
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidArgumentError("sample_type_config is not a JSON object");
  std::map<std::string, std::string> names;
  for (const auto& [type, config] : json.items()) {
    if (!config.is_object()) return InvalidArgumentError("sample_type_config: want objects in it");
    const auto name = config.find("display-name");
    if (name != config.end() && name->is_string()) names[type] = name->get<std::string>();
  }
  return names;
}

PushResult Refused(const Status& error) {
  const bool too_large = error.code() == StatusCode::kResourceExhausted;
  return {.error = error,
          .refusal = too_large ? Refusal::kTooLarge : Refusal::kMalformedRequest,
          .refused = 1};
}

// The profile of a request, and its type.
Status ReadBody(const IngestRequest& request, const PushLimits& limits, pprof::Profile* profile,
                std::string* type) {
  std::map<std::string, std::string> display_names;
  std::string_view pprof = request.body;
  if (IsMultipart(request.content_type)) {
    if (!request.format.empty()) {
      return InvalidArgumentError("format '" + request.format.substr(0, 20) +
                                  "' does not go with a multipart body");
    }
    FF_ASSIGN_OR_RETURN(const std::vector<FormPart> parts,
                        ReadMultipart(request.content_type, request.body, kMaxParts));
    pprof = {};
    for (const FormPart& part : parts) {
      if (part.name == "prev_profile") {
        return InvalidArgumentError("prev_profile: send the difference instead");
      }
      if (part.name == "profile" && part.has_file_name) pprof = part.content;
      if (part.name == "sample_type_config") {
        FF_ASSIGN_OR_RETURN(display_names, ReadDisplayNames(part.content));
      }
    }
  } else if (request.format != "pprof") {
    const bool lines = request.format == "lines";
    if (!lines && !request.format.empty() && request.format != "folded") {
      return InvalidArgumentError("format '" + request.format.substr(0, 20) +
                                  "': want pprof, folded or lines");
    }
    FoldedReader reader(limits, SampleRateOf(request.sample_rate));
    FF_RETURN_IF_ERROR(ReadFolded(request.body, !lines, &reader));
    *profile = std::move(reader.profile());
    *type = "process_cpu";
    return OkStatus();
  }
  if (pprof.empty()) return OkStatus();
  FF_RETURN_IF_ERROR(pprof::Decode(pprof, limits.profile, profile));
  *type = ProfileTypeOf(*profile, display_names);
  return OkStatus();
}

}  // namespace

Result<Labels> ParseIngestName(const std::string& name) {
  const size_t brace = name.find('{');
  const std::string service(Trimmed(std::string_view(name).substr(0, brace)));
  if (!IsName(service, "-:") || !IsUtf8(name)) {
    return InvalidArgumentError("name '" + (IsUtf8(name) ? name.substr(0, 100) : "") +
                                "': want SERVICE{label=value,...}");
  }
  Labels labels = {{kServiceName, service}};
  if (brace == std::string::npos || !name.ends_with('}')) return labels;
  std::string_view rest = std::string_view(name).substr(brace + 1, name.size() - brace - 2);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = pair.find('=');
    if (Trimmed(pair).empty()) continue;
    const std::string key(Trimmed(pair.substr(0, equals)));
    if (equals == std::string_view::npos || !IsName(key, "")) {
      return InvalidArgumentError("name: label '" + key.substr(0, 100) + "': want label=value");
    }
    if (!key.starts_with("__")) labels[key] = Trimmed(pair.substr(equals + 1));
  }
  return labels;
}

PushResult ReadIngest(const IngestRequest& request, const PushLimits& limits, int64_t now_ns) {
  Result<Labels> labels = ParseIngestName(request.name);
  if (!labels.ok()) {
    return {.error = labels.status(), .refusal = Refusal::kInvalidLabels, .refused = 1};
  }
  pprof::Profile profile;
  std::string type;
  if (const Status read = ReadBody(request, limits, &profile, &type); !read.ok()) {
    return Refused(read);
  }
  if (profile.samples.empty()) return {};
  if (profile.time_ns == 0 && !request.from.empty()) {
    const Result<int64_t> from = ParseTime(request.from, now_ns);
    if (from.ok()) profile.time_ns = *from;
  }
  (*labels)[kProfileName] = type;
  if (!request.spy_name.empty() && IsUtf8(request.spy_name)) {
    (*labels)[kSpyLabel] = request.spy_name;
  }
  pyroscope::PushRequest push;
  AddSeries(*labels, profile, &push);
  return ReadPushRequest(&push, limits, now_ns);
}

}  // namespace flamefleet::store
