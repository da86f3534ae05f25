// SPDX-License-Identifier: Apache-2.0
#include "store/ingest/typed_profile.h"

#include "proto/pyroscope/push.pb.h"

namespace flamefleet::store {

std::string ProfileTypeOf(const pprof::Profile& profile,
                          const std::map<std::string, std::string>& display_names) {
  std::string last;
  for (const pprof::ValueType& type : profile.sample_types) {
    last = std::string(profile.strings.Get(type.type));
    const auto display = display_names.find(last);
    const std::string shown = display == display_names.end() ? last : display->second;
    if (last.starts_with("inuse_") || last.starts_with("alloc_")) return "memory";
    if (last == "wall") return "wall";
    if (last == "goroutine" || last == "goroutines") {
      return display == display_names.end() ? "goroutines" : "goroutine";
    }
    if (last == "contentions" || last == "delay") {
      return shown.starts_with("block") ? "block" : "mutex";
    }
  }
  if (last == "cpu" || last == "samples") return "process_cpu";
  std::erase(last, ':');
  return last.empty() ? "process_cpu" : last;
}

void AddSeries(const Labels& labels, const pprof::Profile& profile, pyroscope::PushRequest* push) {
  pyroscope::RawProfileSeries* const series = push->add_series();
  for (const auto& [name, value] : labels) {
    pyroscope::LabelPair* const label = series->add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  pprof::Encode(profile, series->add_samples()->mutable_raw_profile());
}

}  // namespace flamefleet::store
