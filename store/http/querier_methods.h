// SPDX-License-Identifier: Apache-2.0
// The methods of QuerierHandler, one function each.
//
// Thread: any. Errors: as of queries; kNotFound never: nothing found is an empty answer.
// kUnimplemented: what a request asks for is not here.
#pragma once

#include "base/pprof/profile.h"
#include "base/status.h"
#include "proto/pyroscope/querier.pb.h"
#include "store/query/engine.h"

namespace flamefleet::store::querier {

// A selector as these requests have it; without a type and a matcher of __name__ it means all
// types. `__profile_type__="..."` among the matchers chooses a type.
Result<Selector> ParseMatchers(const std::string& text);

Result<pyroscope::ProfileTypesResponse> ProfileTypes(QueryEngine* engine,
                                                     const pyroscope::ProfileTypesRequest& request);
Result<pyroscope::LabelsResponse> LabelNames(QueryEngine* engine,
                                             const pyroscope::LabelNamesRequest& request);
Result<pyroscope::LabelsResponse> LabelValues(QueryEngine* engine,
                                              const pyroscope::LabelValuesRequest& request);
Result<pyroscope::SeriesResponse> Series(QueryEngine* engine,
                                         const pyroscope::SeriesRequest& request);
Result<pyroscope::SelectMergeStacktracesResponse> SelectMergeStacktraces(
    QueryEngine* engine, const pyroscope::SelectMergeStacktracesRequest& request);
Result<pyroscope::SelectSeriesResponse> SelectSeries(QueryEngine* engine,
                                                     const pyroscope::SelectSeriesRequest& request);
Result<pyroscope::DiffResponse> Diff(QueryEngine* engine, const pyroscope::DiffRequest& request);
// Empty when nothing matches.
Result<pprof::Profile> SelectMergeProfile(QueryEngine* engine,
                                          const pyroscope::SelectMergeProfileRequest& request);

}  // namespace flamefleet::store::querier
