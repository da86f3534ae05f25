// SPDX-License-Identifier: Apache-2.0
// same_stacks PID PERF_PID: attaches our sampling program to the events of a running `perf record`
// of process PID, so that both take a stack at the very same moments. Prints each of ours: thread,
// nanoseconds of the monotonic clock, how it ends, user addresses from the innermost on. Ends with
// its standard input. Run as root.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "agent/host/process.h"
#include "agent/sample/unwind_maps.h"
#include "agent/stack/unwinder.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/stack_ends.h"
#include "bpf/passing.skel.h"
#include "bpf/profiler.h"
#include "tests/fidelity/passing.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kTableBytes = 64 << 20;
constexpr uint32_t kRingBytes = 4 << 20;

struct Printer {
  explicit Printer(const passing_bpf& skeleton)
      : unwinder(UnwindMaps(bpf_map__fd(skeleton.maps.unwind_tables),
                            bpf_map__fd(skeleton.maps.unwind_processes)),
                 "/proc", kTableBytes) {}

  void Take(const ff_sample& sample) {
    const ProcessId id{
        .pid = sample.pid, .start_boottime = sample.start_boottime, .exec_id = sample.exec_id};
    const auto process = processes.Get(id, sample.comm, SystemClock().MonotonicNanos());
    if (process && process->image && !process->is_announced)
      process->is_announced = unwinder.Prepare(id, process->image);
    char text[24];
    std::string& stack = stacks[sample.tid];
    stack = kStackEnds.at(sample.stop);
    for (uint32_t i = 0; i < sample.user_frames; ++i) {
      std::snprintf(text, sizeof(text), " %" PRIx64, sample.frames[sample.kernel_frames + i]);
      stack += text;
    }
  }

  void Print(const passed_record& passed) {
    const auto stack = stacks.find(passed.tid);
    if (stack == stacks.end()) return;  // it was lost
    std::printf("%u %" PRIu64 " %s\n", passed.tid, passed.nanos, stack->second.c_str());
    stacks.erase(stack);
  }

  static int OnRecord(void* context, void* data, size_t) {
    auto* const self = static_cast<Printer*>(context);
    const auto* const passed = static_cast<const passed_record*>(data);
    if (passed->kind == FF_RECORD_SAMPLE) self->Take(*static_cast<const ff_sample*>(data));
    if (passed->kind == PASSED_RECORD) self->Print(*passed);
    return 0;
  }

  std::unordered_map<uint32_t, std::string> stacks;  // by thread, until its time is told
  ProcessTable processes{"/proc", 1024};
  Unwinder unwinder;
};

// How many events it was attached to.
int AttachToEventsOf(pid_t perf, int program) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, perf, 0)));
  FF_CHECK(process.ok());
  int count = 0;
  const std::string directory = "/proc/" + std::to_string(perf) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != "anon_inode:[perf_event]") continue;
    const int number = std::atoi(entry.path().filename().c_str());
    const UniqueFd event(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    if (event.ok() && ::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program) == 0) ++count;
  }
  return count;
}

void Run(uint32_t pid, pid_t perf) {
  const std::unique_ptr<passing_bpf, decltype(&passing_bpf__destroy)> skeleton(
      passing_bpf__open(), &passing_bpf__destroy);
  FF_CHECK(skeleton != nullptr);
  skeleton->rodata->config.scope = FF_SCOPE_PIDS;
  bpf_map__set_max_entries(skeleton->maps.ring, kRingBytes);
  FF_CHECK(passing_bpf__load(skeleton.get()) == 0);
  skeleton->data->max_user_frames = FF_MAX_USER_FRAMES;
  const uint8_t present = 1;
  FF_CHECK(bpf_map_update_elem(bpf_map__fd(skeleton->maps.pids), &pid, &present, BPF_ANY) == 0);
  Printer printer(*skeleton);
  const std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring(
      ring_buffer__new(bpf_map__fd(skeleton->maps.ring), Printer::OnRecord, &printer, nullptr),
      &ring_buffer__free);
  FF_CHECK(ring != nullptr);
  std::fprintf(stderr, "same_stacks: attached to %d events\n",
               AttachToEventsOf(perf, bpf_program__fd(skeleton->progs.take_and_pass)));
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (::poll(&input, 1, 100) == 0)
    ring_buffer__consume(ring.get());
  ring_buffer__consume(ring.get());
}

}  // namespace
}  // namespace flamefleet::agent

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: same_stacks PID PERF_PID\n");
    return 2;
  }
  flamefleet::agent::Run(static_cast<uint32_t>(std::atoi(argv[1])), std::atoi(argv[2]));
  return 0;
}
