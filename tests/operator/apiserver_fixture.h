// SPDX-License-Identifier: Apache-2.0
// ApiServer: a real etcd and kube-apiserver for the tests of one program, started by
// `e2e/cluster apiserver`, with our CRDs. Nothing else of Kubernetes runs: no controller deletes or
// creates anything by itself.
//
// Thread: one. Errors: a server that does not start fails the test program.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "operator/kube/client_config.h"
#include "operator/kube/rest_client.h"

namespace flamefleet {

class ApiServer {
 public:
  // `flags`: more flags of kube-apiserver.
  explicit ApiServer(const std::vector<std::string>& flags = {});
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  const std::string& kubeconfig() const { return kubeconfig_; }
  const ClientConfig& config() const { return config_; }
  // A client of its own for the test, with an administrator's rights.
  std::unique_ptr<RestClient> NewClient(Metrics& metrics) const;

  // The kubectl of the server's version.
  std::string kubectl() const { return folder_ + "/state/kubectl"; }

  struct Output {
    int exit_code = 0;
    std::string text;  // stdout and stderr
  };
  // Its kubectl with these arguments and this stdin.
  Output Kubectl(const std::vector<std::string>& arguments, const std::string& input = "") const;
  // The same, and the test fails when kubectl does.
  std::string MustKubectl(const std::vector<std::string>& arguments,
                          const std::string& input = "") const;

 private:
  std::string folder_;
  pid_t pid_ = -1;
  UniqueFd stdin_;  // the server stops when this closes
  std::string kubeconfig_;
  ClientConfig config_;
};

// Waits until `holds` is true, at most a minute; false when the time is over.
bool Eventually(const std::function<bool()>& holds);

}  // namespace flamefleet
