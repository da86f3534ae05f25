// SPDX-License-Identifier: Apache-2.0
#include "store/http/querier_methods.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/pprof/call_tree.h"
#include "base/pprof/wrapping_sum.h"
#include "store/db/label_sets.h"
#include "store/query/flame_levels.h"
#include "store/query/full_type.h"
#include "store/query/timeline.h"

namespace flamefleet::store::querier {
namespace {

using pprof::CallTree;

constexpr char kProfileType[] = "__profile_type__";
constexpr size_t kMaxNodes = 200'000;  // of a graph, also when the client names no limit

Result<TimeRange> RangeOf(int64_t start_ms, int64_t end_ms) {
  constexpr int64_t kMaxMs = INT64_MAX / kNanosPerMilli - 1;
  if (start_ms <= 0 || end_ms <= 0) return InvalidArgumentError("missing time range in the query");
  if (start_ms > end_ms || end_ms > kMaxMs) {
    return InvalidArgumentError("the time range ends before it begins, or is none of this world");
  }
  return TimeRange{start_ms * kNanosPerMilli, (end_ms + 1) * kNanosPerMilli - 1};
}

Status CheckMatchers(const google::protobuf::RepeatedPtrField<std::string>& matchers) {
  if (static_cast<size_t>(matchers.size()) <= kMaxMatchers) return OkStatus();
  return InvalidArgumentError("more than " + std::to_string(kMaxMatchers) + " matchers");
}

// Calls `visitor` for each series that matches one of the matchers, for all when there is none; for
// some of them again.
Status VisitSeries(QueryEngine* engine,
                   const google::protobuf::RepeatedPtrField<std::string>& matchers,
                   const TimeRange& range, const SeriesVisitor& visitor) {
  if (matchers.empty()) return engine->database()->SelectSeries(Selector{}, range, visitor);
  FF_RETURN_IF_ERROR(CheckMatchers(matchers));
  for (const std::string& text : matchers) {
    FF_ASSIGN_OR_RETURN(const Selector selector, ParseMatchers(text));
    FF_RETURN_IF_ERROR(engine->database()->SelectSeries(selector, range, visitor));
  }
  return OkStatus();
}

// What a request for a merge asks for.
struct What {
  Selector selector;
  TimeRange range;
};

template <typename Request>
Result<What> WhatOf(const Request& request) {
  const std::string& type = request.profile_typeid();
  if (std::count(type.begin(), type.end(), ':') != 4) {
    return InvalidArgumentError("profileTypeID '" + type.substr(0, 100) +
                                "': want name:type:unit:period_type:period_unit");
  }
  if (request.label_selector().empty()) {
    return InvalidArgumentError("labelSelector is missing; {} means all");
  }
  if (request.has_stack_trace_selector()) {
    return UnimplementedError("this store does not select by stack");
  }
  What what;
  FF_ASSIGN_OR_RETURN(what.selector, ParseSelector(type + request.label_selector()));
  FF_ASSIGN_OR_RETURN(what.range, RangeOf(request.start(), request.end()));
  return what;
}

template <typename Request>
Status CheckIsWhole(const Request& request) {
  if (request.profile_id_selector_size() > 0) {
    return UnimplementedError("this store does not select by profile id");
  }
  return OkStatus();
}

// Nothing found is a profile without samples.
Result<MergedProfile> Merge(const QueryEngine& engine, const What& what,
                            const MergedProfile* held = nullptr) {
  Result<MergedProfile> merged = engine.Merge(what.selector, what.range, held);
  if (merged.status().code() == StatusCode::kNotFound) return MergedProfile{};
  return merged;
}

Result<size_t> NodesOf(const pyroscope::SelectMergeStacktracesRequest& request) {
  if (request.format() != pyroscope::PROFILE_FORMAT_UNSPECIFIED &&
      request.format() != pyroscope::PROFILE_FORMAT_FLAMEGRAPH) {
    return UnimplementedError("this store answers with flame graphs alone");
  }
  FF_RETURN_IF_ERROR(CheckIsWhole(request));
  if (request.max_nodes() < 0) return InvalidArgumentError("maxNodes is negative");
  if (request.max_nodes() == 0) return kMaxNodes;
  return std::min(static_cast<size_t>(request.max_nodes()), kMaxNodes);
}

Status AddTo(CallTree* tree, const MergedProfile& merged, CallTree::Side side) {
  if (merged.profile.sample_types.empty()) return OkStatus();
  return tree->Add(merged.profile, 0, side);
}

template <typename Graph>
void FillGraph(const FlameLevels& levels, Graph* graph) {
  for (const std::string& name : levels.names)
    graph->add_names(name);
  for (const std::vector<int64_t>& level : levels.levels) {
    auto* const values = graph->add_levels()->mutable_values();
    values->Add(level.begin(), level.end());
  }
  graph->set_total(pprof::WrappingSum(levels.total[0], levels.total[1]));
  graph->set_max_self(levels.max_self);
}

void FillLabels(const Labels& labels,
                google::protobuf::RepeatedPtrField<pyroscope::LabelPair>* out) {
  for (const auto& [name, value] : labels) {
    pyroscope::LabelPair* const pair = out->Add();
    pair->set_name(name);
    pair->set_value(value);
  }
}

Labels Only(const Labels& labels, const google::protobuf::RepeatedPtrField<std::string>& names) {
  Labels kept;
  for (const std::string& name : names) {
    if (const auto label = labels.find(name); label != labels.end()) kept.insert(*label);
  }
  return kept;
}

// The types of what is selected, by full name.
Result<std::map<std::string, std::pair<std::string, SampleType>>> TypesOf(QueryEngine* engine,
                                                                          const Selector& selector,
                                                                          const TimeRange& range) {
  std::map<std::string, std::pair<std::string, SampleType>> types;
  FF_RETURN_IF_ERROR(
      engine->database()->SelectNewestTotals(selector, range, [&](const ProfileTotal& profile) {
        const std::string& name = profile.labels.at(kProfileName);
        const SampleType& type = profile.total.type;
        types.try_emplace(FullType(name, type), name, type);
        return OkStatus();
      }));
  return types;
}

}  // namespace

Result<Selector> ParseMatchers(const std::string& text) {
  const bool without_type = text.starts_with('{');
  FF_ASSIGN_OR_RETURN(Selector selector,
                      ParseSelector(without_type ? "{__name__!=\"\"," + text.substr(1) : text));
  std::vector<Matcher> matchers;
  for (Matcher& matcher : selector.matchers) {
    if (matcher.label != kProfileType) {
      matchers.push_back(std::move(matcher));
      continue;
    }
    if (matcher.op != Matcher::Op::kEqual) {
      return InvalidArgumentError("__profile_type__ can be compared by = alone");
    }
    FF_ASSIGN_OR_RETURN(Selector type, ParseSelector(matcher.value));
    selector.sample_type = type.sample_type;
    std::move(type.matchers.begin(), type.matchers.end(), std::back_inserter(matchers));
  }
  selector.matchers = std::move(matchers);
  return selector;
}

Result<pyroscope::ProfileTypesResponse> ProfileTypes(
    QueryEngine* engine, const pyroscope::ProfileTypesRequest& request) {
  TimeRange range{0, INT64_MAX};
  if (request.start() != 0 || request.end() != 0) {
    FF_ASSIGN_OR_RETURN(range, RangeOf(request.start(), request.end()));
  }
  FF_ASSIGN_OR_RETURN(const auto types, TypesOf(engine, Selector{}, range));
  pyroscope::ProfileTypesResponse response;
  for (const auto& [id, type] : types) {
    pyroscope::ProfileType* const out = response.add_profile_types();
    out->set_id(id);
    out->set_name(type.first);
    out->set_sample_type(type.second.type);
    out->set_sample_unit(type.second.unit);
    out->set_period_type(type.second.period_type);
    out->set_period_unit(type.second.period_unit);
  }
  return response;
}

Result<pyroscope::LabelsResponse> LabelNames(QueryEngine* engine,
                                             const pyroscope::LabelNamesRequest& request) {
  FF_ASSIGN_OR_RETURN(const TimeRange range, RangeOf(request.start(), request.end()));
  std::set<std::string> names;
  const auto add = [&](const Labels& labels) {
    for (const auto& [name, value] : labels)
      names.insert(name);
    return OkStatus();
  };
  FF_RETURN_IF_ERROR(VisitSeries(engine, request.matchers(), range, add));
  if (!names.empty()) names.insert(kProfileType);
  pyroscope::LabelsResponse response;
  response.mutable_names()->Add(names.begin(), names.end());
  return response;
}

Result<pyroscope::LabelsResponse> LabelValues(QueryEngine* engine,
                                              const pyroscope::LabelValuesRequest& request) {
  if (request.name().empty()) return InvalidArgumentError("name is required");
  FF_ASSIGN_OR_RETURN(const TimeRange range, RangeOf(request.start(), request.end()));
  std::set<std::string> values;
  if (request.name() == kProfileType) {
    FF_RETURN_IF_ERROR(CheckMatchers(request.matchers()));
    std::vector<Selector> selectors;
    for (const std::string& text : request.matchers()) {
      FF_ASSIGN_OR_RETURN(selectors.emplace_back(), ParseMatchers(text));
    }
    if (selectors.empty()) selectors.emplace_back();
    for (const Selector& selector : selectors) {
      FF_ASSIGN_OR_RETURN(const auto types, TypesOf(engine, selector, range));
      for (const auto& [id, type] : types)
        values.insert(id);
    }
  } else {
    const auto add = [&](const Labels& labels) {
      if (const auto label = labels.find(request.name()); label != labels.end()) {
        values.insert(label->second);
      }
      return OkStatus();
    };
    FF_RETURN_IF_ERROR(VisitSeries(engine, request.matchers(), range, add));
  }
  pyroscope::LabelsResponse response;
  response.mutable_names()->Add(values.begin(), values.end());
  return response;
}

Result<pyroscope::SeriesResponse> Series(QueryEngine* engine,
                                         const pyroscope::SeriesRequest& request) {
  FF_ASSIGN_OR_RETURN(const TimeRange range, RangeOf(request.start(), request.end()));
  LabelSets sets;
  const auto add = [&](const Labels& labels) {
    return sets.Add(request.label_names().empty() ? labels : Only(labels, request.label_names()));
  };
  FF_RETURN_IF_ERROR(VisitSeries(engine, request.matchers(), range, add));
  pyroscope::SeriesResponse response;
  for (const Labels& labels : sets.sets()) {
    if (!labels.empty()) FillLabels(labels, response.add_labels_set()->mutable_labels());
  }
  return response;
}

Result<pyroscope::SelectMergeStacktracesResponse> SelectMergeStacktraces(
    QueryEngine* engine, const pyroscope::SelectMergeStacktracesRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
  FF_ASSIGN_OR_RETURN(const size_t max_nodes, NodesOf(request));
  FF_ASSIGN_OR_RETURN(const MergedProfile merged, Merge(*engine, what));
  CallTree tree;
  FF_RETURN_IF_ERROR(AddTo(&tree, merged, CallTree::kMain));
  tree.Prune(max_nodes);
  pyroscope::SelectMergeStacktracesResponse response;
  FillGraph(LevelsOf(tree, CallTree::kMain), response.mutable_flamegraph());
  return response;
}

Result<pprof::Profile> SelectMergeProfile(QueryEngine* engine,
                                          const pyroscope::SelectMergeProfileRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
  FF_RETURN_IF_ERROR(CheckIsWhole(request));
  if (request.max_nodes() != 0) {
    return UnimplementedError("this store does not cut a pprof: leave maxNodes out");
  }
  FF_ASSIGN_OR_RETURN(MergedProfile merged, Merge(*engine, what));
  return std::move(merged.profile);
}

Result<pyroscope::DiffResponse> Diff(QueryEngine* engine, const pyroscope::DiffRequest& request) {
  FF_ASSIGN_OR_RETURN(const What left, WhatOf(request.left()));
  FF_ASSIGN_OR_RETURN(const What right, WhatOf(request.right()));
  FF_ASSIGN_OR_RETURN(const size_t left_nodes, NodesOf(request.left()));
  FF_ASSIGN_OR_RETURN(const size_t right_nodes, NodesOf(request.right()));
  if (request.left().profile_typeid() != request.right().profile_typeid()) {
    return InvalidArgumentError("cannot compare " + request.left().profile_typeid() + " with " +
                                request.right().profile_typeid());
  }
  FF_ASSIGN_OR_RETURN(const MergedProfile left_merged, Merge(*engine, left));
  FF_ASSIGN_OR_RETURN(const MergedProfile right_merged, Merge(*engine, right, &left_merged));
  CallTree tree;
  FF_RETURN_IF_ERROR(AddTo(&tree, left_merged, CallTree::kMain));
  FF_RETURN_IF_ERROR(AddTo(&tree, right_merged, CallTree::kBaseline));
  tree.Prune(std::min(left_nodes, right_nodes));
  const FlameLevels levels = LevelsOf(tree, CallTree::kBaseline);
  pyroscope::DiffResponse response;
  FillGraph(levels, response.mutable_flamegraph());
  response.mutable_flamegraph()->set_leftticks(levels.total[CallTree::kMain]);
  response.mutable_flamegraph()->set_rightticks(levels.total[CallTree::kBaseline]);
  return response;
}

Result<pyroscope::SelectSeriesResponse> SelectSeries(
    QueryEngine* engine, const pyroscope::SelectSeriesRequest& request) {
  FF_ASSIGN_OR_RETURN(const What what, WhatOf(request));
  constexpr double kMinStep = 0.001;
  if (!(request.step() >= kMinStep && request.step() <= 1e9)) {
    return InvalidArgumentError("step must be at least 0.001 s");
  }
  if (request.limit() < 0) return InvalidArgumentError("limit is negative");
  const auto step_ns = static_cast<int64_t>(std::llround(request.step() * kNanosPerSecond));
  struct Sum {
    int64_t value = 0;
    int64_t profiles = 0;
  };
  struct Line {
    int64_t total = 0;
    std::map<int64_t, Sum> points;  // by number of the step
  };
  std::map<Labels, Line> lines;
  size_t points = 0;
  const auto add = [&](const ProfileTotal& profile) {
    Line& line = lines[Only(profile.labels, request.group_by())];
    // A point is at the first step that is not before the profile.
    const auto [sum, is_new] =
        line.points.try_emplace((profile.time_ns - what.range.from_ns + step_ns - 1) / step_ns);
    points += is_new ? 1 : 0;
    sum->second.value = pprof::WrappingSum(sum->second.value, profile.total.value);
    ++sum->second.profiles;
    line.total = pprof::WrappingSum(line.total, profile.total.value);
    if (points <= kMaxTimelineSums) return OkStatus();
    return ResourceExhaustedError("the answer has more than " + std::to_string(kMaxTimelineSums) +
                                  " points; choose a longer step or a shorter time range");
  };
  FF_RETURN_IF_ERROR(engine->database()->SelectTotals(what.selector, what.range, add));
  std::vector<const std::pair<const Labels, Line>*> order;
  for (const auto& line : lines)
    order.push_back(&line);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.total > b->second.total; });
  if (request.limit() > 0) {
    order.resize(std::min(order.size(), static_cast<size_t>(request.limit())));
  }
  const bool average = request.aggregation() == pyroscope::TIME_SERIES_AGGREGATION_TYPE_AVERAGE;
  pyroscope::SelectSeriesResponse response;
  for (const auto* line : order) {
    pyroscope::TimeSeries* const series = response.add_series();
    FillLabels(line->first, series->mutable_labels());
    for (const auto& [step, sum] : line->second.points) {
      pyroscope::Point* const point = series->add_points();
      point->set_timestamp((what.range.from_ns + step * step_ns) / kNanosPerMilli);
      point->set_value(static_cast<double>(sum.value) /
                       (average ? static_cast<double>(sum.profiles) : 1));
    }
  }
  return response;
}

}  // namespace flamefleet::store::querier
