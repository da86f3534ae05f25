// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/lease_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "operator/kube/resource.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// A longer lease than any program asks for: what is beyond it is a mistake or malice.
constexpr int64_t kMaxDurationSeconds = 3600;

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t Number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

}  // namespace

Result<LiveLease> DecodeLease(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("metadata") || !object["metadata"].is_object()) {
    return InvalidArgumentError("read lease: not a Lease");
  }
  LiveLease lease;
  lease.version = Text(object["metadata"], "resourceVersion");
  const auto spec = object.find("spec");
  if (spec == object.end() || !spec->is_object()) return lease;
  lease.record = {Text(*spec, "holderIdentity"), Number(*spec, "leaseDurationSeconds"),
                  Number(*spec, "leaseTransitions"), Text(*spec, "acquireTime"),
                  Text(*spec, "renewTime")};
  return lease;
}

std::string EncodeLease(const std::string& ns, const std::string& name, const LeaseRecord& record,
                        const std::string& version) {
  json object = {{"apiVersion", kLeases.api_version},
                 {"kind", kLeases.kind},
                 {"metadata", {{"name", name}, {"namespace", ns}}},
                 {"spec",
                  {{"holderIdentity", record.holder},
                   {"leaseDurationSeconds", record.duration_seconds},
                   {"leaseTransitions", record.transitions},
                   {"acquireTime", record.acquire_time},
                   {"renewTime", record.renew_time}}}};
  if (!version.empty()) object["metadata"]["resourceVersion"] = version;
  return object.dump();
}

std::string FormatMicroTime(int64_t wall_ns) {
  std::string text = FormatRfc3339(wall_ns);  // "...:05.123Z"
  std::string micros = std::to_string(wall_ns / 1000 % 1000);
  micros.insert(0, 3 - micros.size(), '0');
  text.insert(text.size() - 1, micros);
  return text;
}

bool IsFree(const LeaseRecord& record, std::chrono::nanoseconds unchanged_for,
            std::chrono::nanoseconds fallback) {
  if (record.holder.empty()) return true;
  const std::chrono::nanoseconds duration =
      record.duration_seconds > 0
          ? std::chrono::seconds(std::min(record.duration_seconds, kMaxDurationSeconds))
          : fallback;
  return unchanged_for >= duration;
}

}  // namespace flamefleet
