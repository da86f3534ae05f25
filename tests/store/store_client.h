// SPDX-License-Identifier: Apache-2.0
// A client of the store that owes nothing to our HTTP code: plain sockets, and libprotobuf for the
// requests.
//
// Thread: any. Bounds: every wait ends after 20 s.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/match/labels.h"

namespace flamefleet::store {

struct Reply {
  int status = 0;                              // 0: no (whole) answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

using Headers = std::map<std::string, std::string>;

Reply Send(uint16_t port, const std::string& method, const std::string& target,
           const Headers& headers = {}, const std::string& body = "");
Reply Get(uint16_t port, const std::string& path,
          const std::map<std::string, std::string>& query = {});

// A push request of one series with these profiles.
std::string PushBody(const Labels& labels, const std::vector<std::string>& profiles);
Reply Push(uint16_t port, const std::string& body,
           const std::string& content_type = "application/proto");

// hand_cpu2 (6 samples, 60 ms: leafA 30, leafB 20, work 10) at another time, not compressed.
std::string CpuProfileAt(int64_t time_ns);

// {__name__: name, service_name: service}
Labels SeriesLabels(const std::string& service, const std::string& name = "process_cpu");

}  // namespace flamefleet::store
