// SPDX-License-Identifier: Apache-2.0
// The real ControlServer and TokenReviewer for tests/bench/controlload, which says how it is used.
// The answers of the API server are made here: it is not what is measured.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/base64.h"
#include "base/log.h"
#include "operator/control/control_server.h"
#include "operator/security/token_reviewer.h"
#include "tests/support/channel_files.h"

namespace flamefleet {
namespace {

using nlohmann::json;

constexpr const char* kAccount = "system:serviceaccount:ns:flamefleet-agent";

// What the API server would say of a token whose claims have the node.
Result<std::string> Answer(const std::string& review) {
  std::string token = json::parse(review)["spec"]["token"];
  token = token.substr(token.find('.') + 1);
  token = token.substr(0, token.find('.'));
  token.append((4 - token.size() % 4) % 4, '=');
  FF_ASSIGN_OR_RETURN(const std::string claims, DecodeBase64(token));
  return json{{"status",
               {{"authenticated", true},
                {"audiences", {"flamefleet-operator"}},
                {"user",
                 {{"username", kAccount},
                  {"extra",
                   {{"authentication.kubernetes.io/node-name", {json::parse(claims)["node"]}}}}}}}}}
      .dump();
}

plan::NodeAssignment Assignment(int node, int pods, int round) {
  plan::NodeAssignment assignment;
  for (int i = 0; i < pods; ++i) {
    const std::string name = "checkout-" + std::to_string(node) + "-" + std::to_string(i);
    plan::PodAssignment pod{.uid = "uid-" + name, .ns = "shop", .name = name, .ip = "10.1.2.3"};
    pod.containers = {{.name = "app",
                       .id = "container-" + std::to_string(i == 0 ? round : 0),
                       .backend = "main",
                       .labels = {{"service_name", "checkout"},
                                  {"namespace", "shop"},
                                  {"pod", name},
                                  {"container", "app"},
                                  {"node", "n" + std::to_string(node)}}}};
    assignment[pod.uid] = std::move(pod);
  }
  return assignment;
}

int Main(int nodes, int pods) {
  SetLogLevel(LogLevel::kWarn);
  Metrics metrics;
  const ChannelFiles files;
  security::TokenReviewer reviewer(
      kAccount, SystemClock(), metrics,
      [](const std::string& body, const std::stop_token&) { return Answer(body); },
      [](const std::string&, const std::string&) { return std::string(); });
  control::ControlServer server(
      SystemClock(), metrics,
      [&](const std::string& token, const std::stop_token& stop) {
        return reviewer.Check(token, stop);
      },
      [](const std::string&) {});
  server.SetCertificate(files.serving());
  server.SetConfig("default",
                   {.sampling_frequency_hz = 19, .backends = {{"main", "http://store:4040"}}});
  const auto set_all = [&](int round) {
    for (int node = 0; node < nodes; ++node)
      server.SetAssignment("n" + std::to_string(node), Assignment(node, pods, round));
  };
  set_all(0);
  if (!server.Listen("127.0.0.1:0").ok()) return 1;
  std::printf("%d %s\n", server.port(), files.trust_file().c_str());
  std::fflush(stdout);
  int round = 0;
  for (std::string line; std::getline(std::cin, line);)
    set_all(++round);
  return 0;
}

}  // namespace
}  // namespace flamefleet

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return flamefleet::Main(std::atoi(argv[1]), std::atoi(argv[2]));
}
