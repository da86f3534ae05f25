// SPDX-License-Identifier: Apache-2.0
// The image that the operator's own pod runs: agents and stores run the same one.
//
// Thread: any; blocks. Errors: those of RestClient::Get; kInvalidArgument a pod without a
// container.
#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"
#include "operator/kube/rest_client.h"

namespace flamefleet {

struct OwnImage {
  std::string image;
  std::string pull_policy;
};

Result<OwnImage> ReadOwnImage(RestClient& client, const std::string& ns, const std::string& pod,
                              const std::stop_token& stop);

}  // namespace flamefleet
