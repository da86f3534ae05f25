// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/server_object.h"

#include <nlohmann/json.hpp>

#include "base/wire.h"
#include "operator/api/json_reader.h"
#include "operator/api/message_reader.h"

namespace flamefleet {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);
constexpr uint32_t kUnknownRaw = 2;  // runtime.Unknown
constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

template <typename Reader>
ObjectHead ReadHead(const Reader& object) {
  ObjectHead head;
  object.Object({"metadata", 1}, [&](const auto& metadata) {
    metadata.String({"namespace", 3}, head.ns);
    metadata.String({"name", 1}, head.name);
    metadata.String({"resourceVersion", 6}, head.version);
    api::StringMap annotations;
    metadata.Map({"annotations", 12}, annotations,
                 [](std::string_view key) { return key == kInitialEventsEnd; });
    head.initial_events_end = !annotations.empty();
  });
  return head;
}

}  // namespace

ObjectHead HeadOf(const ServerObject& object) {
  if (object.json != nullptr) return ReadHead(api::ObjectReader(*object.json, "object"));
  return ReadHead(api::MessageReader(object.message, "object"));
}

bool IsProtobuf(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

std::string_view OpenEnvelope(std::string_view bytes) {
  if (!IsProtobuf(bytes)) return {};
  WireReader reader(bytes.substr(kMagic.size()));
  for (WireField field; reader.Next(&field);) {
    if (field.number == kUnknownRaw && field.type == WireType::kBytes) return field.bytes;
  }
  return {};
}

}  // namespace flamefleet
