// SPDX-License-Identifier: Apache-2.0
// `top` and `pprof`: what the managed store has of a workload.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/flags.h"
#include "kubectl/cluster.h"
#include "kubectl/commands.h"
#include "kubectl/store_proxy.h"

namespace flamefleet::kubectl {
namespace {

struct ProfileOptions {
  ClusterFlags cluster{.timeout = std::chrono::seconds(70)};  // a store works for a minute at most
  ProfileQuery query;
  std::vector<std::string> names;

  void AddTo(Flags& flags) {
    cluster.AddTo(flags);
    flags.Text("type", "TYPE",
               "cpu, memory, goroutine, mutex, block, or as the store has it: memory:alloc_space",
               &query.type);
    flags.Duration("since", "how far back", &query.since);
    flags.Text("backend", "NAME",
               "the ProfilingBackend whose store is asked; default: where the profiles go",
               &query.backend);
    flags.Arguments(&names);
  }
};

// The exit code when the command is done with its arguments.
std::optional<int> ParseArguments(Flags& flags, ProfileOptions& options, int count,
                                  const char* const* arguments) {
  if (const Status parsed = flags.Parse(count, arguments); !parsed.ok()) return RefuseUsage(parsed);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  const Result<WorkloadName> workload = ParseWorkloadName(options.names);
  if (!workload.ok()) return RefuseUsage(workload.status());
  options.query.workload = *workload;
  if (const Status type = SelectorOf(options.query).status(); !type.ok()) return RefuseUsage(type);
  return std::nullopt;
}

Result<std::string> Ask(ProfileOptions& options, const std::string& route,
                        const std::string& parameters) {
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<Cluster> cluster, Cluster::Connect(options.cluster));
  options.query.ns = cluster->ns();
  FF_ASSIGN_OR_RETURN(const std::string backend, FindStore(*cluster, options.query));
  return AskStore(*cluster, backend, route, options.query, parameters);
}

// No profiles is an answer, everything else is none.
int CodeOf(const Status& status) {
  Refuse(status);
  return status.code() == StatusCode::kNotFound ? kNotWell : kNoAnswer;
}

// In place: the file may be a device or a pipe.
Status Write(const std::string& bytes, const std::string& path) {
  FF_ASSIGN_OR_RETURN(UniqueFd file, OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC, 0666));
  FF_RETURN_IF_ERROR(WriteAll(file.get(), bytes, path));
  if (close(file.Release()) != 0) return ErrnoError(errno, "write " + path);
  return OkStatus();
}

}  // namespace

int TopCommand(int count, const char* const* arguments) {
  ProfileOptions options;
  int64_t limit = 20;
  std::string output;
  Flags flags("kubectl flamefleet top POD | KIND/NAME [flags]",
              "Shows the hottest functions of a workload: what each spent itself (flat) and with "
              "what it called (cum). Exits with 1 when there are no profiles.");
  options.AddTo(flags);
  flags.Number("limit", "N", "functions to show", 1, 10'000, &limit);
  flags.Text("output", "FORM", "json; default: for people", &output);
  flags.Short('o', "output");
  if (const auto code = ParseArguments(flags, options, count, arguments)) return *code;
  if (!output.empty() && output != "json")
    return RefuseUsage(InvalidArgumentError("--output '" + output + "': want json"));
  const Result<std::string> table =
      Ask(options, "top",
          "&limit=" + std::to_string(limit) + "&format=" + (output.empty() ? "text" : "json"));
  if (!table.ok()) return CodeOf(table.status());
  std::fputs(table->c_str(), stdout);
  return 0;
}

int PprofCommand(int count, const char* const* arguments) {
  ProfileOptions options;
  std::string file;
  Flags flags("kubectl flamefleet pprof POD | KIND/NAME -o FILE [flags]",
              "Writes the merged profile of a workload for 'go tool pprof' and others that read "
              "gzip pprof. Exits with 1 when there are no profiles.");
  options.AddTo(flags);
  flags.Text("output", "FILE", "where to write; - is standard output", &file);
  flags.Short('o', "output");
  if (const auto code = ParseArguments(flags, options, count, arguments)) return *code;
  if (file.empty()) return RefuseUsage(InvalidArgumentError("-o FILE is missing"));
  if (file == "-" && isatty(STDOUT_FILENO) != 0)
    return RefuseUsage(
        InvalidArgumentError("-o -: a profile is no text; standard output is a terminal"));
  const Result<std::string> profile = Ask(options, "pprof", "");
  if (!profile.ok()) return CodeOf(profile.status());
  if (file == "-") {
    std::fwrite(profile->data(), 1, profile->size(), stdout);
    return 0;
  }
  if (const Status written = Write(*profile, file); !written.ok()) return Refuse(written);
  std::fprintf(stderr, "%s: %zu bytes in %s\n", options.query.Text().c_str(), profile->size(),
               file.c_str());
  return 0;
}

}  // namespace flamefleet::kubectl
