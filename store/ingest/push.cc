// SPDX-License-Identifier: Apache-2.0
#include "store/ingest/push.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet::store {
namespace {

constexpr char kUnknownService[] = "unknown_service";
// Labels that tell Pyroscope something about the sender and are not part of the series.
constexpr char kSessionId[] = "__session_id__";
constexpr char kDelta[] = "__delta__";
constexpr size_t kMaxQuotedBytes = 64;  // of a label in a message
// Series, labels and samples of a request; agents send one series with some ten labels.
constexpr size_t kMaxRequestParts = 200'000;

std::string Quoted(const std::string& text) {
  const bool whole = text.size() <= kMaxQuotedBytes;
  return "'" + CutUtf8(text, kMaxQuotedBytes) + (whole ? "'" : "...'");
}

Status CheckLabel(const pyroscope::LabelPair& label, const PushLimits& limits) {
  if (label.name().empty()) return InvalidArgumentError("a label has no name");
  if (label.name().size() > limits.max_label_name_bytes) {
    return InvalidArgumentError("label name " + Quoted(label.name()) + " is longer than " +
                                std::to_string(limits.max_label_name_bytes) + " bytes");
  }
  if (label.value().size() > limits.max_label_value_bytes) {
    return InvalidArgumentError("the value of label " + Quoted(label.name()) + " is longer than " +
                                std::to_string(limits.max_label_value_bytes) + " bytes");
  }
  if (!IsUtf8(label.name()) || !IsUtf8(label.value())) {
    return InvalidArgumentError("a label is not UTF-8");
  }
  if (label.name() == kServiceName && label.value().empty()) {
    return InvalidArgumentError("label 'service_name' is empty");
  }
  return OkStatus();
}

Result<Labels> ReadLabels(const pyroscope::RawProfileSeries& series, const PushLimits& limits) {
  Labels labels;
  for (const pyroscope::LabelPair& label : series.labels()) {
    FF_RETURN_IF_ERROR(CheckLabel(label, limits));
    if (label.name() == kSessionId || label.name() == kDelta) continue;
    if (!labels.emplace(label.name(), label.value()).second) {
      return InvalidArgumentError("label " + Quoted(label.name()) + " occurs twice");
    }
  }
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  const auto name = labels.find(kProfileName);
  if (name == labels.end()) {
    return InvalidArgumentError(
        "label '__name__' (the profile type, such as process_cpu) is missing");
  }
  if (name->second.find(':') != std::string::npos) {
    return InvalidArgumentError("label '__name__' " + Quoted(name->second) +
                                " has a colon, which separates the parts of a profile type");
  }
  labels.emplace(kServiceName, kUnknownService);
  if (labels.size() > limits.max_labels) {
    return InvalidArgumentError("a series has " + std::to_string(labels.size()) +
                                " labels, at most " + std::to_string(limits.max_labels) +
                                " are allowed");
  }
  return labels;
}

std::string NameOf(const Labels& labels) {
  return Quoted(labels.at(kProfileName)) + " of " + Quoted(labels.at(kServiceName));
}

std::vector<Total> TotalsOf(const pprof::Profile& profile) {
  const auto text = [&](uint32_t index) { return std::string(profile.strings.Get(index)); };
  std::vector<Total> totals;
  for (size_t i = 0; i < profile.sample_types.size(); ++i) {
    const SampleType type{.type = text(profile.sample_types[i].type),
                          .unit = text(profile.sample_types[i].unit),
                          .period_type = text(profile.period_type.type),
                          .period_unit = text(profile.period_type.unit)};
    totals.push_back({.type = type,
                      .is_default = i == pprof::DefaultSampleType(profile),
                      .value = pprof::TotalValue(profile, i)});
  }
  return totals;
}

class PushReader {
 public:
  PushReader(const PushLimits& limits, int64_t now_ns) : limits_(limits), now_ns_(now_ns) {}

  PushResult Read(pyroscope::PushRequest* request) {
    for (pyroscope::RawProfileSeries& series : *request->mutable_series())
      ReadSeries(&series);
    return std::move(result_);
  }

 private:
  void Refuse(Refusal refusal, const Status& error, int profiles = 1) {
    result_.refused += static_cast<size_t>(profiles);
    if (!result_.error.ok()) return;
    result_.error = error;
    result_.refusal = refusal;
  }

  void ReadSeries(pyroscope::RawProfileSeries* series) {
    const Result<Labels> labels = ReadLabels(*series, limits_);
    if (!labels.ok()) {
      Refuse(Refusal::kInvalidLabels, labels.status(), series->samples_size());
      return;
    }
    for (pyroscope::RawSample& sample : *series->mutable_samples()) {
      ReadProfile(*labels, sample.mutable_raw_profile());
    }
  }

  void ReadProfile(const Labels& labels, std::string* bytes) {
    if (const Status decoded = pprof::Decode(*bytes, limits_.profile, &profile_); !decoded.ok()) {
      const bool too_large = decoded.code() == StatusCode::kResourceExhausted;
      Refuse(too_large ? Refusal::kTooLarge : Refusal::kMalformedProfile,
             Annotate(decoded, NameOf(labels)));
      return;
    }
    const int64_t time_ns = profile_.time_ns == 0 ? now_ns_ : profile_.time_ns;
    if (time_ns < now_ns_ - limits_.max_age_ns) {
      Refuse(Refusal::kTooOld,
             InvalidArgumentError(NameOf(labels) + ": its time, " + FormatRfc3339(time_ns) +
                                  ", is older than what this store keeps (since " +
                                  FormatRfc3339(now_ns_ - limits_.max_age_ns) + ")"));
      return;
    }
    if (time_ns > now_ns_ + limits_.max_future_ns) {
      Refuse(Refusal::kTooNew,
             InvalidArgumentError(NameOf(labels) + ": its time, " + FormatRfc3339(time_ns) +
                                  ", is in the future (here it is " + FormatRfc3339(now_ns_) +
                                  "); check the clocks"));
      return;
    }
    const bool has_value = std::any_of(profile_.values.begin(), profile_.values.end(),
                                       [](int64_t value) { return value != 0; });
    if (!has_value) return;  // nothing happened: accepted, not stored
    result_.profiles.push_back(
        {labels, time_ns, std::move(*bytes), TotalsOf(profile_), profile_.duration_ns});
  }

  const PushLimits& limits_;
  const int64_t now_ns_;
  pprof::Profile profile_;
  PushResult result_;
};

Status TooManyParts() {
  return ResourceExhaustedError("the request has more than " + std::to_string(kMaxRequestParts) +
                                " series, labels and samples; send several requests");
}

// An empty part takes two bytes of the body and fifty times that when it is parsed.
Status CheckParts(std::string_view body) {
  size_t parts = 0;
  WireReader request(body);
  for (WireField series; request.Next(&series);) {
    if (++parts > kMaxRequestParts) return TooManyParts();
    if (series.type != WireType::kBytes) continue;
    WireReader reader(series.bytes);
    for (WireField part; reader.Next(&part);) {
      if (++parts > kMaxRequestParts) return TooManyParts();
    }
  }
  return OkStatus();
}

// Profiles are base64, which has no braces.
Status CheckJsonParts(std::string_view body) {
  const auto objects = static_cast<size_t>(std::count(body.begin(), body.end(), '{'));
  return objects > kMaxRequestParts ? TooManyParts() : OkStatus();
}

Status Parse(std::string_view body, PushEncoding encoding, pyroscope::PushRequest* request) {
  if (encoding == PushEncoding::kProto) {
    FF_RETURN_IF_ERROR(CheckParts(body));
    if (request->ParseFromArray(body.data(), static_cast<int>(body.size()))) return OkStatus();
    return InvalidArgumentError("the body is not a push.v1.PushRequest");
  }
  FF_RETURN_IF_ERROR(CheckJsonParts(body));
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(body.data(), body.size()), request, options);
  if (parsed.ok()) return OkStatus();
  return InvalidArgumentError("the body is not a push.v1.PushRequest in JSON: " +
                              std::string(parsed.message().data(), parsed.message().size()));
}

}  // namespace

PushResult ReadPushRequest(pyroscope::PushRequest* request, const PushLimits& limits,
                           int64_t now_ns) {
  return PushReader(limits, now_ns).Read(request);
}

PushResult ReadPush(std::string_view body, PushEncoding encoding, const PushLimits& limits,
                    int64_t now_ns) {
  PushResult refused{.refused = 1};
  if (body.size() > limits.max_request_bytes) {
    refused.error = ResourceExhaustedError("the request is larger than " +
                                           std::to_string(limits.max_request_bytes) + " bytes");
    refused.refusal = Refusal::kTooLarge;
    return refused;
  }
  pyroscope::PushRequest request;
  refused.error = Parse(body, encoding, &request);
  const bool too_large = refused.error.code() == StatusCode::kResourceExhausted;
  refused.refusal = too_large ? Refusal::kTooLarge : Refusal::kMalformedRequest;
  if (!refused.error.ok()) return refused;
  const bool has_profile =
      std::any_of(request.series().begin(), request.series().end(),
                  [](const auto& series) { return series.samples_size() > 0; });
  if (!has_profile) {
    refused.error = InvalidArgumentError("no profiles received");
    return refused;
  }
  return ReadPushRequest(&request, limits, now_ns);
}

}  // namespace flamefleet::store
