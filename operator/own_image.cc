// SPDX-License-Identifier: Apache-2.0
#include "operator/own_image.h"

#include <nlohmann/json.hpp>

namespace flamefleet {

Result<OwnImage> ReadOwnImage(RestClient& client, const std::string& ns, const std::string& pod,
                              const std::stop_token& stop) {
  using nlohmann::json;
  FF_ASSIGN_OR_RETURN(const std::string text, client.Get(kPods, ns, pod, stop));
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const json::json_pointer container("/spec/containers/0");
  if (!object.is_object() || !object.contains(container / "image")) {
    return InvalidArgumentError("read the image of pod " + ns + "/" + pod + ": it has none");
  }
  const json& first = object[container];
  return OwnImage{first["image"].get<std::string>(), first.value("imagePullPolicy", "")};
}

}  // namespace flamefleet
