// SPDX-License-Identifier: Apache-2.0
// QuerierHandler: POST /querier.v1.QuerierService/METHOD, the query API of Pyroscope that Grafana's
// data source uses, as Connect unary calls.
//
//   ProfileTypes LabelNames LabelValues Series SelectMergeStacktraces SelectMergeProfile
//   SelectSeries Diff
//
// Not here, and 501: other formats than flame graphs, selection by stack or by profile id.
//
// Thread: any, several at once. Bounds: those of QueryEngine.
// Errors: a code of Connect and a message, in JSON.
// Source: what Pyroscope answers on the wire.
#pragma once

#include <string>

#include "base/http/server.h"
#include "store/query/engine.h"

namespace flamefleet::store {

class QuerierHandler {
 public:
  explicit QuerierHandler(QueryEngine* engine) : engine_(engine) {}
  QuerierHandler(const QuerierHandler&) = delete;
  QuerierHandler& operator=(const QuerierHandler&) = delete;

  static bool IsMine(const std::string& path);

  HttpServerResponse Handle(const HttpServerRequest& request);

 private:
  QueryEngine* const engine_;
};

}  // namespace flamefleet::store
