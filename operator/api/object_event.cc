// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_event.h"

#include "operator/api/json_reader.h"

namespace flamefleet::api {

Result<ObjectEvent> DecodeObjectEvent(const nlohmann::json& object) {
  const ObjectReader root(object, "Event");
  ObjectEvent event;
  ReadMeta(root, event.meta);
  event.meta.resource_version.clear();
  root.Object("regarding", [&](const ObjectReader& in) {
    in.String("name", event.object);
    in.String("uid", event.object_uid);
  });
  root.String("note", event.message);
  root.Time("eventTime", event.last_ns);
  root.Time("deprecatedLastTimestamp", event.last_ns);  // of controllers that use the older API
  root.Object("series",
              [&](const ObjectReader& in) { in.Time("lastObservedTime", event.last_ns); });
  if (!root.status().ok()) return root.status();
  return event;
}

}  // namespace flamefleet::api
