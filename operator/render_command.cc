// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "base/flags.h"
#include "operator/commands.h"
#include "operator/render/render.h"

namespace flamefleet {

int RenderCommand(int count, const char* const* arguments) {
  render::RenderOptions options;
  options.settings = {.ns = "flamefleet-system", .image = "flamefleet"};
  std::string form = "text";
  Flags flags("flamefleet-operator render -f DIR|FILE... [flags]",
              "Says, without a cluster, which objects the operator would make of manifests, what "
              "would be profiled of each pod, and why not what would not. Exits with 1 when a "
              "manifest is invalid. Rules in CEL are checked by the API server only.");
  flags.TextList("filename", "PATH",
                 "a file, a folder with all below it, or - for standard input: pods, workloads, "
                 "our kinds, Lists of them",
                 &options.paths);
  flags.Short('f', "filename");
  flags.Arguments(&options.paths);
  flags.Text("output", "FORM", "text, yaml or json", &form);
  flags.Short('o', "output");
  flags.Text("namespace", "NAME", "where agents and stores would run", &options.settings.ns);
  flags.Text("image", "IMAGE", "the image of agents and stores", &options.settings.image);
  flags.Switch("strict", "exit with 1, too, when a ProfilingTarget selects no pod of the manifests",
               &options.strict);
  const Status parsed = flags.Parse(count, arguments);
  if (!parsed.ok()) return RefuseUsage(parsed);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (options.paths.empty()) return RefuseUsage(InvalidArgumentError("-f is missing"));
  const std::optional<render::OutputForm> parsed_form = render::ParseOutputForm(form);
  if (!parsed_form) {
    return RefuseUsage(InvalidArgumentError("--output '" + form + "': want text, yaml or json"));
  }
  options.form = *parsed_form;
  return render::Render(options, std::cout, std::cerr) ? 0 : 1;
}

}  // namespace flamefleet
