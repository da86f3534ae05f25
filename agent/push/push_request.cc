// SPDX-License-Identifier: Apache-2.0
#include "agent/push/push_request.h"

#include "proto/pyroscope/push.pb.h"

namespace flamefleet::agent {

std::string EncodePushRequest(const FinishedProfile& profile) {
  Labels labels = profile.labels;
  labels["__name__"] = MetricName(profile.collection.type);
  labels["__delta__"] = "false";
  pyroscope::PushRequest request;
  pyroscope::RawProfileSeries* const series = request.add_series();
  for (const auto& [name, value] : labels) {
    pyroscope::LabelPair* const label = series->add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  series->add_samples()->set_raw_profile(profile.pprof);
  return request.SerializeAsString();
}

}  // namespace flamefleet::agent
