// SPDX-License-Identifier: Apache-2.0
// `open`: the web UI of the managed store in a browser. The page's address is at the root of its
// server, so the API server's proxy cannot serve it: `kubectl port-forward` runs as a child, which
// has all that a connection to a kubelet takes, and ends with us.
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/argv.h"
#include "base/fd.h"
#include "base/flags.h"
#include "base/http/url.h"
#include "kubectl/cluster.h"
#include "kubectl/commands.h"
#include "kubectl/store_proxy.h"
#include "operator/plan/names.h"

namespace flamefleet::kubectl {
namespace {

struct OpenOptions {
  ClusterFlags cluster;
  std::vector<std::string> names;
  std::string backend;
  int64_t port = 0;
  bool browser = true;
};

std::vector<std::string> ForwardCommand(const OpenOptions& options, const std::string& system_ns,
                                        const std::string& backend) {
  std::vector<std::string> command = {"kubectl"};
  if (!options.cluster.kubeconfig.empty())
    command.insert(command.end(), {"--kubeconfig", options.cluster.kubeconfig});
  if (!options.cluster.context.empty())
    command.insert(command.end(), {"--context", options.cluster.context});
  const std::string local = options.port == 0 ? "" : std::to_string(options.port);
  command.insert(command.end(), {"-n", system_ns, "port-forward", "--address=127.0.0.1",
                                 "service/" + plan::StoreName(backend),
                                 local + ":" + std::to_string(plan::kStorePort)});
  return command;
}

struct Child {
  pid_t pid = -1;
  FILE* output = nullptr;  // of its stdout
};

// A child that ends when we do.
Result<Child> Start(std::vector<std::string> command) {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd output(fds[0]);
  const UniqueFd input(fds[1]);
  const std::vector<char*> arguments = ArgvOf(command);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "start " + command.front());
  if (pid == 0) {
    dup2(input.get(), STDOUT_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) execvp(arguments[0], arguments.data());
    _exit(127);
  }
  return Child{pid, fdopen(output.Release(), "r")};
}

// The next line without its end; empty: there is none.
std::string NextLine(FILE* file) {
  std::string line;
  for (int c = 0; (c = std::fgetc(file)) != EOF && c != '\n';)
    line.push_back(static_cast<char>(c));
  return line;
}

// The local port of "Forwarding from 127.0.0.1:PORT -> 4040"; empty: it is no such line.
std::string PortOf(const std::string& line) {
  const std::string begin = "Forwarding from 127.0.0.1:";
  if (!line.starts_with(begin)) return "";
  return line.substr(begin.size(), line.find(' ', begin.size()) - begin.size());
}

// Where there is a desktop; what it says is no business of ours.
void OpenBrowser(const std::string& url) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  std::vector<std::string> command = {"xdg-open", url};
  pid_t pid = -1;
  if (posix_spawnp(&pid, "xdg-open", nullptr, nullptr, ArgvOf(command).data(), environ) != 0)
    PrintNote("there is no xdg-open: open the address yourself");
}

Result<std::string> PageOf(const OpenOptions& options, const std::string& ns) {
  if (options.names.empty()) return std::string("/");
  FF_ASSIGN_OR_RETURN(const WorkloadName workload, ParseWorkloadName(options.names));
  FF_ASSIGN_OR_RETURN(const std::string selector, SelectorOf({.ns = ns, .workload = workload}));
  const size_t begin = selector.find('{') + 1;
  const std::string matchers = selector.substr(begin, selector.size() - begin - 1);
  return "/?view=single&filter=" + UrlEncode(matchers);
}

Status Run(const OpenOptions& options) {
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<Cluster> cluster, Cluster::Connect(options.cluster));
  FF_ASSIGN_OR_RETURN(const std::string page, PageOf(options, cluster->ns()));
  std::string backend = options.backend;
  if (backend.empty() && options.names.empty()) {
    FF_ASSIGN_OR_RETURN(backend, FindDefaultStore(*cluster));
  } else if (backend.empty()) {
    FF_ASSIGN_OR_RETURN(const WorkloadName workload, ParseWorkloadName(options.names));
    FF_ASSIGN_OR_RETURN(backend, FindStore(*cluster, {.ns = cluster->ns(), .workload = workload}));
  }
  FF_ASSIGN_OR_RETURN(const Child child,
                      Start(ForwardCommand(options, cluster->system_ns(), backend)));
  bool opened = false;
  for (std::string line; !(line = NextLine(child.output)).empty();) {
    const std::string port = PortOf(line);
    if (port.empty() || opened) continue;
    opened = true;
    const std::string url = "http://127.0.0.1:" + port + page;
    std::printf("%s\nuntil Ctrl-C\n", url.c_str());
    std::fflush(stdout);
    if (options.browser) OpenBrowser(url);
  }
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return UnavailableError("there is no kubectl in PATH");
  return UnavailableError("kubectl port-forward has ended" +
                          std::string(opened ? ": the store's pod is gone, or you are" : ""));
}

}  // namespace

int OpenCommand(int count, const char* const* arguments) {
  OpenOptions options;
  Flags flags("kubectl flamefleet open [POD | KIND/NAME] [flags]",
              "Forwards a port to the managed store, prints the address of its web UI and opens it "
              "in a browser where there is one; ends with Ctrl-C.");
  options.cluster.AddTo(flags);
  flags.Text("backend", "NAME",
             "the ProfilingBackend whose store is opened; default: where the profiles go",
             &options.backend);
  flags.Number("port", "PORT", "the local port; 0: any", 0, 65535, &options.port);
  flags.Switch("browser", "open a browser", &options.browser);
  flags.Arguments(&options.names);
  if (const Status parsed = flags.Parse(count, arguments); !parsed.ok()) return RefuseUsage(parsed);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (!options.names.empty()) {
    const Status named = ParseWorkloadName(options.names).status();
    if (!named.ok()) return RefuseUsage(named);
  }
  return Refuse(Run(options));
}

}  // namespace flamefleet::kubectl
