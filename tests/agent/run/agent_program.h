// SPDX-License-Identifier: Apache-2.0
// AgentProgram: flamefleet-agent run, as the DaemonSet starts it, for a FakeOperator; it is killed
// with its owner.
//
// Thread: one owner.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/http/fetch.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_operator.h"

namespace flamefleet {

class AgentProgram {
 public:
  struct Options {
    std::string directory;  // of its spool and its saved assignment
    std::string spool_size = "64Mi";
    std::vector<std::string> prefix;  // of the command, such as env NAME=VALUE
  };
  AgentProgram(const FakeOperator& fake, const ChannelFiles& files, const Options& options)
      : child_(Command(fake, files, options)) {}

  pid_t pid() const { return child_.pid(); }
  int Wait() { return child_.Wait(); }

  // Until the agent says that it has started.
  void AwaitStart() {
    const std::string rest = AwaitLog("\"http_port\":");
    http_port_ = static_cast<uint16_t>(std::strtoul(rest.c_str(), nullptr, 10));
  }
  // Until its log has that text; what follows it in the line.
  std::string AwaitLog(const std::string& text) {
    for (std::string line = child_.ReadLine(); !line.empty(); line = child_.ReadLine()) {
      const size_t at = line.find(text);
      if (at != std::string::npos) return line.substr(at + text.size());
    }
    ADD_FAILURE() << "the agent ended and never said: " << text;
    return "";
  }
  // Sum of a metric over its labels. After AwaitStart.
  double Metric(const std::string& name) const { return MetricIn(Metrics(), name); }
  // Whether each profile is where the metrics say that it is; not while one is on its way.
  bool BooksBalance() const {
    const std::string metrics = Metrics();
    const auto count = [&metrics](const std::string& what) {
      return MetricIn(metrics, "flamefleet_agent_profiles_" + what);
    };
    return count("produced_total") + count("recovered_total") + count("split_total") ==
           count("delivered_total") + count("dropped_total") + count("waiting");
  }

 private:
  static std::vector<std::string> Command(const FakeOperator& fake, const ChannelFiles& files,
                                          const Options& options) {
    std::vector<std::string> command = options.prefix;
    for (const std::string& word :
         {std::string(FF_AGENT), std::string("run"), "--operator=" + fake.address(),
          std::string("--node=n1"), "--operator-trust=" + files.trust_file(),
          "--operator-token=" + files.token_file(), "--state=" + options.directory,
          "--spool=" + options.directory, "--spool-size=" + options.spool_size,
          std::string("--listen=127.0.0.1:0")}) {
      command.push_back(word);
    }
    return command;
  }

  std::string Metrics() const {
    const auto answer =
        Fetch({.address = "127.0.0.1", .port = http_port_, .target = "/metrics"}, {});
    return answer.ok() ? answer->body : "";
  }
  static double MetricIn(const std::string& metrics, const std::string& name) {
    double sum = 0;
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + "{") || line.starts_with(name + " "))
        sum += std::stod(line.substr(line.rfind(' ')));
    }
    return sum;
  }

  ChildProcess child_;
  uint16_t http_port_ = 0;
};

}  // namespace flamefleet
