// SPDX-License-Identifier: Apache-2.0
// QueryHandler: what reads profiles; handler.cc lists the routes for users.
//
// Thread: any, several at once.
// Bounds: those of QueryEngine.
// Errors: become a status code and a line of text.
#pragma once

#include <string>
#include <vector>

#include "base/http/server.h"
#include "base/status.h"
#include "store/query/engine.h"

namespace flamefleet::store {

class QueryHandler {
 public:
  explicit QueryHandler(QueryEngine* engine) : engine_(engine) {}
  QueryHandler(const QueryHandler&) = delete;
  QueryHandler& operator=(const QueryHandler&) = delete;

  static const std::vector<std::string>& Routes();
  // The route of a path; empty when it is none of ours.
  static std::string RouteOf(const std::string& path);

  HttpServerResponse Handle(const std::string& route, const HttpServerRequest& request);

 private:
  struct What;

  Result<HttpServerResponse> Answer(const std::string& route, const HttpServerRequest& request);
  Result<HttpServerResponse> Pprof(const HttpServerRequest& request);
  Result<HttpServerResponse> Top(const HttpServerRequest& request);
  Result<HttpServerResponse> FlameGraph(const HttpServerRequest& request);
  Result<HttpServerResponse> TimelineOf(const HttpServerRequest& request);
  Result<HttpServerResponse> Types(const HttpServerRequest& request);
  Result<HttpServerResponse> Series(const HttpServerRequest& request);
  Result<HttpServerResponse> LabelList(const HttpServerRequest& request);

  Result<What> WhatOf(const HttpServerRequest& request, const std::string& prefix = "") const;
  Result<What> WhatOrAll(const HttpServerRequest& request) const;
  Result<MergedProfile> Merge(const What& what, const MergedProfile* held = nullptr) const;

  QueryEngine* const engine_;
};

}  // namespace flamefleet::store
