// SPDX-License-Identifier: Apache-2.0
#include "agent/sample/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "agent/sample/preflight.h"
#include "base/clock.h"
#include "base/log.h"
#include "bpf/profiler.skel.h"

namespace flamefleet::agent {
namespace {

constexpr char kOnlineCpus[] = "/sys/devices/system/cpu/online";
constexpr size_t kMaxCpuListBytes = 64 << 10;
constexpr int kMaxCpus = 16384;  // more than any kernel is built for

// A drain is due every 250 ms; at 97 Hz and 400 B a sample a CPU fills 10 KiB between two of them,
// at 999 Hz 100 KiB. 64 KiB per CPU leave room for a late drain at usual rates.
constexpr size_t kRingBytesPerCpu = 64 << 10;
constexpr size_t kMinRingBytes = 1 << 20;
constexpr size_t kMaxRingBytes = 64 << 20;

int LogLibbpf(enum libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  char text[1024];
  const int length = std::vsnprintf(text, sizeof(text), format, arguments);
  std::string_view line(
      text, std::min<size_t>(static_cast<size_t>(std::max(length, 0)), sizeof(text) - 1));
  while (!line.empty() && line.back() == '\n')
    line.remove_suffix(1);
  Log(level == LIBBPF_WARN ? LogLevel::kWarn : LogLevel::kDebug, "libbpf", {{"message", line}});
  return 0;
}

Result<std::vector<int>> OnlineCpus() {
  FF_ASSIGN_OR_RETURN(const std::string text, ReadFile(kOnlineCpus, kMaxCpuListBytes));
  return ParseCpuList(text);
}

Status CheckFrequency(uint32_t frequency_hz) {
  if (frequency_hz >= kMinFrequencyHz && frequency_hz <= kMaxFrequencyHz) return OkStatus();
  return InvalidArgumentError("sampling frequency " + std::to_string(frequency_hz) +
                              " Hz: must be 1 to 999");
}

size_t RingBytes(size_t wanted, size_t cpus) {
  if (wanted != 0) return wanted;
  return std::clamp(std::bit_ceil(cpus * kRingBytesPerCpu), kMinRingBytes, kMaxRingBytes);
}

uint64_t MemlockBytes(int map_fd) {
  const Result<std::string> info =
      ReadFile("/proc/self/fdinfo/" + std::to_string(map_fd), 16 << 10);
  if (!info.ok()) return 0;
  constexpr std::string_view kKey = "memlock:";
  const size_t at = info->find(kKey);
  if (at == std::string::npos) return 0;
  return std::strtoull(info->c_str() + at + kKey.size(), nullptr, 10);
}

}  // namespace

Result<std::vector<int>> ParseCpuList(const std::string& text) {
  const Status bad = InvalidArgumentError("list of CPUs \"" + text + "\": not like 0-3,5");
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&at, end](int* value) {
    const auto [next, error] = std::from_chars(at, end, *value);
    at = next;
    return error == std::errc() && *value >= 0 && *value < kMaxCpus;
  };
  while (at != end && *at != '\n') {
    int first = 0;
    if (!number(&first)) return bad;
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(&last) || last < first) return bad;
    }
    for (int cpu = first; cpu <= last; ++cpu)
      cpus.push_back(cpu);
    if (at != end && *at == ',')
      ++at;
    else if (at != end && *at != '\n')
      return bad;
  }
  return cpus;
}

void Sampler::SkeletonDeleter::operator()(profiler_bpf* skeleton) const {
  profiler_bpf__destroy(skeleton);
}

void Sampler::RingDeleter::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::Create(const SamplerOptions& options) {
  FF_RETURN_IF_ERROR(CheckFrequency(options.frequency_hz));
  if (options.pids.size() > FF_MAX_PIDS) {
    return InvalidArgumentError("profile " + std::to_string(options.pids.size()) +
                                " processes: at most " + std::to_string(FF_MAX_PIDS));
  }
  std::unique_ptr<Sampler> sampler(new Sampler());
  FF_RETURN_IF_ERROR(sampler->Load(options));
  FF_RETURN_IF_ERROR(sampler->SetStackDepth(options.stack_depth));
  sampler->AttachTracepoints();
  sampler->period_ns_ = static_cast<uint64_t>(kNanosPerSecond) / options.frequency_hz;
  FF_RETURN_IF_ERROR(sampler->RefreshCpus());
  return sampler;
}

Status Sampler::Load(const SamplerOptions& options) {
  libbpf_set_print(LogLibbpf);
  FF_ASSIGN_OR_RETURN(const std::vector<int> cpus, OnlineCpus());
  skeleton_.reset(profiler_bpf__open());
  if (!skeleton_) return ErrnoError(errno, "open the BPF program");
  skeleton_->rodata->config.scope = options.scope;
  skeleton_->rodata->config.pid_namespace = OwnPidNamespace();
  bpf_map__set_max_entries(skeleton_->maps.ring,
                           static_cast<uint32_t>(RingBytes(options.ring_bytes, cpus.size())));
  if (const int error = profiler_bpf__load(skeleton_.get()); error != 0) {
    return ErrnoError(-error, "load the BPF program (the lines of libbpf in the log say why)");
  }
  ring_.reset(ring_buffer__new(bpf_map__fd(skeleton_->maps.ring), OnRecord, this, nullptr));
  if (!ring_) return ErrnoError(errno, "map the BPF ring");
  const uint8_t present = 1;
  for (const uint32_t pid : options.pids) {
    if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.pids), &pid, &present, BPF_ANY) != 0)
      return ErrnoError(errno, "select process " + std::to_string(pid));
  }
  return OkStatus();
}

// Without them what is known of an ended process is kept for longer, no more.
void Sampler::AttachTracepoints() {
  auto& programs = skeleton_->progs;
  auto& links = skeleton_->links;
  links.on_exit = bpf_program__attach(programs.on_exit);
  links.on_exec = bpf_program__attach(programs.on_exec);
  if (links.on_exit == nullptr || links.on_exec == nullptr) {
    Log(LogLevel::kWarn, "ends of processes are not seen",
        {{"error", ErrnoError(errno, "attach to sched_process_exit, sched_process_exec")}});
  }
}

Status Sampler::OpenEvent(int cpu) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns_;
  attributes.disabled = 1;
  // The idle task is not sampled, and the kernel, which counts events from tick to tick and stops a
  // timer that has too many, must not count those of a CPU that is idle for long without a tick.
  attributes.exclude_idle = 1;
  const std::string object = "perf event of CPU " + std::to_string(cpu);
  UniqueFd fd(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!fd.ok() && errno == ENODEV) return OkStatus();  // went offline since the list was read
  if (!fd.ok()) return ErrnoError(errno, "open the " + object);
  const int program = bpf_program__fd(skeleton_->progs.take_sample);
  if (::ioctl(fd.get(), PERF_EVENT_IOC_SET_BPF, program) != 0)
    return ErrnoError(errno, "attach the BPF program to the " + object);
  if (::ioctl(fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0)
    return ErrnoError(errno, "enable the " + object);
  events_[cpu] = std::move(fd);
  return OkStatus();
}

Status Sampler::RefreshCpus() {
  FF_ASSIGN_OR_RETURN(const std::vector<int> online, OnlineCpus());
  std::erase_if(events_, [&online](const auto& event) {
    return std::find(online.begin(), online.end(), event.first) == online.end();
  });
  for (const int cpu : online) {
    if (!events_.contains(cpu)) FF_RETURN_IF_ERROR(OpenEvent(cpu));
  }
  if (events_.empty()) return UnavailableError("open perf events: no CPU is online");
  return OkStatus();
}

Status Sampler::ReopenEvents(const std::vector<int>& cpus) {
  for (const int cpu : cpus)
    events_.erase(cpu);
  return RefreshCpus();
}

int Sampler::OnRecord(void* context, void* data, size_t size) {
  auto* const self = static_cast<Sampler*>(context);
  uint32_t kind = 0;
  if (size < sizeof(kind)) return 0;
  std::memcpy(&kind, data, sizeof(kind));
  if (kind == FF_RECORD_SAMPLE && size >= FF_SAMPLE_HEADER_BYTES) {
    const auto& sample = *static_cast<const ff_sample*>(data);
    const size_t frames = size_t{sample.kernel_frames} + sample.user_frames;
    FF_CHECK(size == FF_SAMPLE_HEADER_BYTES + frames * sizeof(uint64_t));
    self->handler_->OnSample(
        {.header = sample,
         .kernel_frames = {sample.frames, sample.kernel_frames},
         .user_frames = {sample.frames + sample.kernel_frames, sample.user_frames}});
  } else if (kind == FF_RECORD_CGROUP && size >= sizeof(ff_cgroup_record)) {
    const auto& record = *static_cast<const ff_cgroup_record*>(data);
    std::string path;
    for (int i = FF_CGROUP_NAMES - 1; i >= 0; --i) {
      const char* const name = record.names[i];
      const size_t length = strnlen(name, FF_CGROUP_NAME_BYTES);
      if (length > 0) path.append("/").append(name, length);
    }
    const bool is_whole = record.names[FF_CGROUP_NAMES - 1][0] == 0;  // up to the root, ""
    if (!is_whole) path.erase(0, 1);
    if (path.empty()) path = "/";
    self->handler_->OnCgroup(record.cgroup_id, path);
  } else if (kind == FF_RECORD_ENDED && size >= sizeof(ff_ended_record)) {
    self->handler_->OnEnded(*static_cast<const ff_ended_record*>(data));
  }
  return 0;
}

int Sampler::ring_fd() const {
  return bpf_map__fd(skeleton_->maps.ring);
}

Result<size_t> Sampler::Drain(SampleHandler& handler) {
  handler_ = &handler;
  const int count = ring_buffer__consume(ring_.get());
  handler_ = nullptr;
  if (count < 0) return ErrnoError(-count, "read the BPF ring");
  return static_cast<size_t>(count);
}

Status Sampler::SetVerdict(uint64_t cgroup_id, bool wanted) {
  const uint32_t verdict = wanted ? FF_CGROUP_WANTED : FF_CGROUP_UNWANTED;
  if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.cgroups), &cgroup_id, &verdict, BPF_ANY) != 0)
    return ErrnoError(errno, "set the verdict of cgroup " + std::to_string(cgroup_id));
  return OkStatus();
}

void Sampler::ForgetCgroup(uint64_t cgroup_id) {
  bpf_map_delete_elem(bpf_map__fd(skeleton_->maps.cgroups), &cgroup_id);
}

Status Sampler::SetFrequency(uint32_t frequency_hz) {
  FF_RETURN_IF_ERROR(CheckFrequency(frequency_hz));
  uint64_t period = static_cast<uint64_t>(kNanosPerSecond) / frequency_hz;
  for (const auto& [cpu, fd] : events_) {
    if (::ioctl(fd.get(), PERF_EVENT_IOC_PERIOD, &period) != 0)
      return ErrnoError(errno, "set the period of the perf event of CPU " + std::to_string(cpu));
  }
  period_ns_ = period;
  return OkStatus();
}

Status Sampler::SetStackDepth(uint32_t frames) {
  if (frames == 0 || frames > FF_MAX_USER_FRAMES) {
    return InvalidArgumentError("stack depth " + std::to_string(frames) + ": must be 1 to " +
                                std::to_string(FF_MAX_USER_FRAMES) + " frames");
  }
  skeleton_->data->max_user_frames = frames;
  return OkStatus();
}

Result<std::vector<uint64_t>> Sampler::ReadCounter(uint32_t counter) const {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return ErrnoError(-cpus, "count the possible CPUs");
  std::vector<uint64_t> per_cpu(static_cast<size_t>(cpus));
  if (bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.counters), &counter, per_cpu.data()) != 0)
    return ErrnoError(errno, "read the BPF counters");
  return per_cpu;
}

Result<std::vector<uint64_t>> Sampler::EventsByCpu() const {
  return ReadCounter(FF_COUNT_EVENTS);
}

Result<SampleCounters> Sampler::ReadCounters() const {
  SampleCounters totals{};
  for (uint32_t i = 0; i < FF_COUNTERS; ++i) {
    FF_ASSIGN_OR_RETURN(const std::vector<uint64_t> per_cpu, ReadCounter(i));
    for (const uint64_t value : per_cpu)
      totals[i] += value;
  }
  return totals;
}

UnwindMaps Sampler::unwind_maps() const {
  return {bpf_map__fd(skeleton_->maps.unwind_tables),
          bpf_map__fd(skeleton_->maps.unwind_processes)};
}

uint64_t Sampler::MapBytes() const {
  uint64_t bytes = 0;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, skeleton_->obj) bytes += MemlockBytes(bpf_map__fd(map));
  return bytes;
}

}  // namespace flamefleet::agent
