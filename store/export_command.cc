// SPDX-License-Identifier: Apache-2.0
#include "store/export_command.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/flags.h"
#include "base/gzip.h"
#include "base/metrics.h"
#include "base/pprof/merge.h"
#include "store/db/database.h"

namespace flamefleet::store {
namespace {

// Of one series' merge.
constexpr size_t kMaxMergeBytes = size_t{1} << 30;

struct ExportOptions {
  std::string data;
  std::string out;
  std::string query;
  std::string from = "0";
  std::string until = "now";
};

// What is safe as a part of a file name anywhere.
std::string FilePart(const std::string& text) {
  constexpr size_t kMax = 60;
  std::string part = text.substr(0, kMax);
  std::replace_if(
      part.begin(), part.end(),
      [](unsigned char c) { return c >= 128 || (std::isalnum(c) == 0 && c != '-' && c != '_'); },
      '_');
  return part;
}

// The merge of exactly this series.
Status ExportSeries(Database* database, const Labels& labels, const TimeRange& range,
                    const std::string& path) {
  Selector selector;
  for (const auto& [name, value] : labels)
    selector.matchers.push_back({.label = name, .value = value});
  pprof::Merger merger(kMaxMergeBytes);
  FF_RETURN_IF_ERROR(database->Select(selector, range, [&](const SelectedPart& part) {
    return part.labels == labels ? merger.Add(*part.profile, part.held_bytes) : OkStatus();
  }));
  std::string bytes;
  pprof::Encode(merger.Take(), &bytes);
  FF_ASSIGN_OR_RETURN(const std::string zipped, Gzip(bytes));
  std::ofstream file(path, std::ios::binary);
  file << zipped;
  file.close();
  return file ? OkStatus() : ErrnoError(errno, "write " + path);
}

Status Export(const ExportOptions& options) {
  const int64_t now_ns = SystemClock().WallNanos();
  FF_ASSIGN_OR_RETURN(const TimeRange range, ParseTimeRange(options.from, options.until, now_ns));
  Selector selector;
  if (!options.query.empty()) {
    FF_ASSIGN_OR_RETURN(selector, ParseSelector(options.query));
  }
  std::error_code error;
  if (!std::filesystem::is_directory(options.data, error)) {
    return NotFoundError("export " + options.data + ": there is no such directory");
  }
  std::filesystem::create_directories(options.out, error);
  if (error) return ErrnoError(error.value(), "create " + options.out);
  Metrics metrics;
  // Nothing is too old or too much to be exported.
  FF_ASSIGN_OR_RETURN(
      const std::unique_ptr<Database> database,
      Database::Open({.directory = options.data, .retention_ns = now_ns, .max_bytes = INT64_MAX},
                     &SystemClock(), &metrics));
  std::set<Labels> series;
  FF_RETURN_IF_ERROR(database->SelectSeries(selector, range, [&](const Labels& labels) {
    series.insert(labels);
    return OkStatus();
  }));
  size_t number = 0;
  for (const Labels& labels : series) {
    const std::string name = std::to_string(++number) + "-" +
                             FilePart(ValueOf(labels, kProfileName)) + "-" +
                             FilePart(ValueOf(labels, kServiceName)) + ".pb.gz";
    FF_RETURN_IF_ERROR(ExportSeries(database.get(), labels, range, options.out + "/" + name));
    std::printf("%s\t%s\n", name.c_str(), nlohmann::json(labels).dump().c_str());
  }
  return number > 0 ? OkStatus() : NotFoundError("nothing was stored that matches");
}

}  // namespace

int ExportCommand(int argc, char** argv) {
  ExportOptions options;
  Flags flags("flamefleet-store export --data DIR --out DIR",
              "Writes what a store that does not run holds as pprof files, one per series.");
  flags.Text("data", "DIR", "where the profiles are kept", &options.data);
  flags.Text("out", "DIR", "where the files go; created if needed", &options.out);
  flags.Text("query", "SELECTOR",
             "which series, as in process_cpu{service_name=\"shop\"}; empty: all", &options.query);
  flags.Text("from", "TIME", "as in queries: now-1h, RFC 3339, Unix seconds", &options.from);
  flags.Text("until", "TIME", "likewise", &options.until);
  Status status = flags.Parse(argc, argv);
  if (status.ok() && flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (status.ok() && (options.data.empty() || options.out.empty())) {
    status = InvalidArgumentError("--data and --out are needed");
  }
  if (!status.ok()) {
    std::fprintf(stderr, "flamefleet-store export: %s\nTry --help.\n",
                 ErrorMessage(status).c_str());
    return 2;
  }
  status = Export(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "flamefleet-store export: %s\n", ErrorMessage(status).c_str());
  return 1;
}

}  // namespace flamefleet::store
