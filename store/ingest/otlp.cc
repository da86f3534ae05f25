// SPDX-License-Identifier: Apache-2.0
#include "store/ingest/otlp.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "proto/otlp/profiles.pb.h"
#include "proto/pyroscope/push.pb.h"
#include "store/ingest/otlp_dictionary.h"
#include "store/ingest/otlp_profile.h"
#include "store/ingest/otlp_wire.h"
#include "store/ingest/typed_profile.h"

namespace flamefleet::store {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;
using otlp::Bad;
using otlp::ForEachField;
using otlp::ForEachMessage;
using otlp::Index;
using otlp::TooMany;

// What our agents call it.
constexpr std::pair<const char*, const char*> kLabelNames[] = {
    {"service.name", kServiceName}, {"k8s.namespace.name", "namespace"}, {"k8s.pod.name", "pod"},
    {"k8s.node.name", "node"},      {"k8s.container.name", "container"},
};
// Of one request: they are read as one.
constexpr size_t kMaxDictionaries = 16;
// Of what a pprof was before it became OTLP.
constexpr std::string_view kPprofAttributes = "pprof.";

class Reader {
 public:
  Reader(const OtlpDictionary& dictionary, const PushLimits& limits)
      : dictionary_(dictionary), limits_(limits), builder_(dictionary, limits.profile) {}

  // Not OK: the frame of the request is damaged.
  Status ReadResource(std::string_view message) {
    Labels labels;
    const Status named = ForEachMessage(
        message, pb::ResourceProfiles::kResourceFieldNumber, "resource",
        [&](std::string_view resource) {
          return ForEachMessage(
              resource, pb::Resource::kAttributesFieldNumber, "attribute",
              [&](std::string_view attribute) { return ReadKeyValue(attribute, &labels); });
        });
    return ForEachMessage(message, pb::ResourceProfiles::kScopeProfilesFieldNumber,
                          "scope_profiles",
                          [&](std::string_view scope) { return ReadScope(scope, named, labels); });
  }

  // What could not become a profile.
  PushResult& refused() { return refused_; }
  pyroscope::PushRequest& push() { return push_; }

 private:
  Status ReadScope(std::string_view message, const Status& named, const Labels& resource) {
    constexpr int kProfiles = pb::ScopeProfiles::kProfilesFieldNumber;
    // Our agents' scopes have the name of the profile type.
    std::string name;
    FF_RETURN_IF_ERROR(ForEachMessage(
        message, pb::ScopeProfiles::kScopeFieldNumber, "scope", [&](std::string_view scope) {
          return ForEachMessage(scope, pb::InstrumentationScope::kNameFieldNumber, "name",
                                [&](std::string_view text) {
                                  name = text.substr(0, limits_.max_label_value_bytes);
                                  return OkStatus();
                                });
        }));
    auto counts = OtlpProfileBuilder::Counts::kBecomeTime;
    const Status looked =
        ForEachMessage(message, kProfiles, "profile", [&](std::string_view profile) {
          if (builder_.HoldsCpuTime(profile)) counts = OtlpProfileBuilder::Counts::kKept;
          return OkStatus();
        });
    FF_RETURN_IF_ERROR(looked);
    return ForEachMessage(message, kProfiles, "profile", [&](std::string_view profile) {
      ReadProfile(profile, named, resource, {counts, name});
      return OkStatus();
    });
  }

  void Refuse(Refusal refusal, const Status& error) {
    ++refused_.refused;
    if (!refused_.error.ok()) return;
    refused_.error = error;
    refused_.refusal =
        error.code() == StatusCode::kResourceExhausted ? Refusal::kTooLarge : refusal;
  }

  Status ReadKeyValue(std::string_view message, Labels* labels) const {
    std::string_view key;
    std::string_view value;
    const Status parsed = ForEachField(message, "attribute", [&](const WireField& field) {
      switch (field.number) {
        case pb::KeyValue::kKeyFieldNumber:
          if (field.type != WireType::kBytes) return Bad("a key with another wire type");
          key = field.bytes;
          return IsUtf8(key) ? OkStatus() : Bad("the name of an attribute is not UTF-8");
        case pb::KeyValue::kKeyStrindexFieldNumber: {
          uint32_t text = 0;
          FF_RETURN_IF_ERROR(Index(field, dictionary_.strings.size(), "strings", &text));
          key = dictionary_.strings[text];
          return OkStatus();
        }
        case pb::KeyValue::kValueFieldNumber:
          if (field.type != WireType::kBytes) return Bad("a value with another wire type");
          value = field.bytes;
          return OkStatus();
        default:
          return OkStatus();
      }
    });
    FF_RETURN_IF_ERROR(parsed);
    return AddLabel(key, value, labels);
  }

  // Texts of the dictionary may be large, and named by many: they are copied when they may be
  // labels.
  Status AddLabel(std::string_view key, std::string_view value, Labels* labels) const {
    if (key.empty() || key.starts_with("__") || key.starts_with(kPprofAttributes)) {
      return OkStatus();
    }
    OtlpValue read;
    FF_RETURN_IF_ERROR(ReadOtlpValue(value, dictionary_, &read));
    if (read.number) read.text = read.made = std::to_string(*read.number);
    if (!read.text || read.text->empty()) return OkStatus();
    if (key.size() > limits_.max_label_name_bytes ||
        read.text->size() > limits_.max_label_value_bytes) {
      return Bad("the name of an attribute is longer than " +
                 std::to_string(limits_.max_label_name_bytes) + " bytes, or its value than " +
                 std::to_string(limits_.max_label_value_bytes));
    }
    const auto renamed = std::find_if(std::begin(kLabelNames), std::end(kLabelNames),
                                      [&](const auto& name) { return name.first == key; });
    (*labels)[std::string(renamed == std::end(kLabelNames) ? key : renamed->second)] = *read.text;
    if (labels->size() <= limits_.max_labels) return OkStatus();
    return Bad("more than " + std::to_string(limits_.max_labels) +
               " attributes of a resource and a profile");
  }

  struct Scope {
    OtlpProfileBuilder::Counts counts;
    const std::string& name;
  };

  void ReadProfile(std::string_view message, const Status& named, const Labels& resource,
                   const Scope& scope) {
    if (!named.ok()) return Refuse(Refusal::kInvalidLabels, named);
    if (bytes_ > limits_.max_request_bytes) return Refuse(Refusal::kTooLarge, TooLarge());
    const Status built = builder_.Build(message, scope.counts);
    if (!built.ok()) return RefuseBuilt(Refusal::kMalformedProfile, built);
    Labels labels = resource;
    for (const uint32_t index : builder_.attributes()) {
      const OtlpDictionary::Attribute& attribute = dictionary_.attributes[index];
      const Status added = AddLabel(dictionary_.strings[attribute.key], attribute.value, &labels);
      if (!added.ok()) return RefuseBuilt(Refusal::kInvalidLabels, added);
    }
    labels[kProfileName] =
        ProfileTypeOf(builder_.profile(), {{"contentions", scope.name}, {"delay", scope.name}});
    AddSeries(labels, builder_.profile(), &push_);
    bytes_ += push_.series().rbegin()->ByteSizeLong();
    if (bytes_ <= limits_.max_request_bytes) return;
    push_.mutable_series()->RemoveLast();
    Refuse(Refusal::kTooLarge, TooLarge());
  }

  void RefuseBuilt(Refusal refusal, const Status& error) {
    bytes_ += pprof::BytesHeld(builder_.profile());  // what it cost
    Refuse(refusal, error);
  }

  Status TooLarge() const {
    return ResourceExhaustedError("the profiles of this request take more than " +
                                  std::to_string(limits_.max_request_bytes) +
                                  " bytes as pprof; send several requests");
  }

  const OtlpDictionary& dictionary_;
  const PushLimits& limits_;
  OtlpProfileBuilder builder_;
  size_t bytes_ = 0;  // of all profiles so far
  PushResult refused_;
  pyroscope::PushRequest push_;
};

PushResult Refused(const Status& error) {
  const bool too_large = error.code() == StatusCode::kResourceExhausted;
  return {.error = error,
          .refusal = too_large ? Refusal::kTooLarge : Refusal::kMalformedRequest,
          .refused = 1};
}

}  // namespace

PushResult ReadOtlp(std::string_view body, const PushLimits& limits, int64_t now_ns) {
  using Request = pb::ExportProfilesServiceRequest;
  std::vector<std::string_view> dictionaries;
  Status read = ForEachMessage(body, Request::kDictionaryFieldNumber, "dictionary",
                               [&](std::string_view message) {
                                 if (dictionaries.size() >= kMaxDictionaries) {
                                   return TooMany("dictionaries", kMaxDictionaries);
                                 }
                                 dictionaries.push_back(message);
                                 return OkStatus();
                               });
  if (!read.ok()) return Refused(read);
  const Result<OtlpDictionary> dictionary = ReadOtlpDictionary(dictionaries, limits.profile);
  if (!dictionary.ok()) return Refused(dictionary.status());
  Reader reader(*dictionary, limits);
  read = ForEachMessage(body, Request::kResourceProfilesFieldNumber, "resource_profiles",
                        [&](std::string_view message) { return reader.ReadResource(message); });
  if (!read.ok()) return Refused(read);
  PushResult result = ReadPushRequest(&reader.push(), limits, now_ns);
  PushResult& refused = reader.refused();
  result.refused += refused.refused;
  if (!refused.error.ok()) {
    result.error = std::move(refused.error);
    result.refusal = refused.refusal;
  }
  return result;
}

}  // namespace flamefleet::store
