// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/collector.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/next_time.h"
#include "base/utf8.h"

namespace flamefleet::agent {
namespace {

constexpr char kKernelService[] = "kernel";  // kernel threads, all of them
constexpr char kOtherService[] = "other";

std::string TextOf(const char (&comm)[FF_COMM_BYTES]) {
  return std::string(comm, strnlen(comm, FF_COMM_BYTES));
}

// What a process of the host is called: `name`, what it runs or the service that it is in, unless
// that is "".
std::string HostServiceOf(const ff_sample& sample, const std::string& name) {
  if ((sample.flags & FF_SAMPLE_KERNEL_THREAD) != 0) return kKernelService;
  return ToUtf8(name.empty() ? TextOf(sample.comm) : name);
}

bool AllMapped(const ProcessImage& image, std::span<const uint64_t> frames) {
  return std::ranges::all_of(frames,
                             [&image](uint64_t frame) { return image.Find(frame) != nullptr; });
}

}  // namespace

Collector::Collector(CpuPipelineOptions::Scope scope, const std::string& proc_root,
                     size_t max_open_files, const Clock& clock)
    : scope_(scope),
      clock_(clock),
      targets_(FF_MAX_CGROUPS),
      processes_(proc_root, max_open_files, clock) {}

void Collector::SetVerdict(uint64_t cgroup_id, bool wanted) {
  const Status status = sampler_->SetVerdict(cgroup_id, wanted);
  if (!status.ok()) Log(LogLevel::kError, "cgroup not selected", {{"error", status}});
}

void Collector::ReplaceTargets(std::vector<CpuTarget> targets, std::optional<HostSeries> host) {
  for (const TargetTable::Verdict& verdict : targets_.Replace(std::move(targets), host.has_value()))
    SetVerdict(verdict.cgroup_id, verdict.wanted);
  if (host == host_) return;
  host_ = std::move(host);
  host_services_.clear();
}

void Collector::OnCgroup(uint64_t id, const std::string& path) {
  std::optional<uint64_t> forgotten;
  const bool wanted = targets_.Add(id, path, &forgotten);
  if (forgotten) sampler_->ForgetCgroup(*forgotten);
  SetVerdict(id, wanted);
}

void Collector::OnEnded(const ff_ended_record& record) {
  const ff_process_key& key = record.process;
  const ProcessId id{.pid = key.pid, .start_boottime = key.start_boottime, .exec_id = key.exec_id};
  processes_.End(id, static_cast<int64_t>(record.exec_ns));
  unwinder_->End(id);
}

std::shared_ptr<const CpuTarget> Collector::HostTarget(const std::string& name) {
  if (const auto found = host_services_.find(name); found != host_services_.end()) {
    found->second.window = windows_;
    return found->second.target;
  }
  if (host_services_.size() >= kMaxHostServices && name != kOtherService) {
    ++counts_.other;
    return HostTarget(kOtherService);
  }
  auto target = std::make_shared<CpuTarget>();
  if (host_) {
    target->collection = host_->collection;
    target->backend = host_->backend;
    target->labels = host_->labels;
  } else {
    target->collection.container = name;
  }
  target->labels["service_name"] = name;
  host_services_[name] = {target, windows_};
  return target;
}

uint32_t Collector::SeriesNumber(const std::shared_ptr<const CpuTarget>& target) {
  const auto [known, is_new_target] = series_by_target_.try_emplace(target, 0);
  if (!is_new_target) return known->second;
  // A restarted container is another target of the same series.
  const auto [found, is_new] =
      series_by_key_.try_emplace(SeriesKey(target->collection, target->backend, target->labels),
                                 static_cast<uint32_t>(series_.size()));
  if (is_new) series_.push_back({.target = target});
  known->second = found->second;
  return found->second;
}

uint32_t Collector::ImageNumber(const std::shared_ptr<Process>& process) {
  if (!process) return kNoImage;
  const auto [found, is_new] =
      process_numbers_.try_emplace(process.get(), static_cast<uint32_t>(window_processes_.size()));
  if (is_new) window_processes_.push_back(process);
  return found->second;
}

bool Collector::Keep(const std::shared_ptr<const CpuTarget>& target, const Sample& sample) {
  bool is_new = false;
  const uint32_t series = SeriesNumber(target);
  const uint32_t thread = target->thread_labels
                              ? threads_.Number(series, sample.thread.id, sample.thread.name)
                              : kNoThread;
  const bool kept = window_->Add({.series = series,
                                  .image = ImageNumber(sample.process),
                                  .thread = thread,
                                  .kernel_frames = sample.kernel_frames,
                                  .user_frames = sample.user_frames},
                                 &is_new);
  if (kept)
    ++series_[series].stack_ends.at(sample.stop);
  else
    ++counts_.window_full;
  return is_new;
}

void Collector::Hold(const RawSample& raw, const Sample& sample) {
  if (held_.size() >= kMaxHeldSamples) {
    ++counts_.unknown;
    return;
  }
  HeldSample held{.cgroup_id = raw.header.cgroup_id,
                  .process = sample.process,
                  .thread = sample.thread,
                  .stop = sample.stop,
                  .kernel_frames = sample.kernel_frames.size(),
                  .period_ns = window_->period_ns};
  held.frames.assign(sample.kernel_frames.begin(), sample.kernel_frames.end());
  held.frames.insert(held.frames.end(), sample.user_frames.begin(), sample.user_frames.end());
  held_.push_back(std::move(held));
}

void Collector::ReleaseHeld() {
  std::erase_if(held_, [this](HeldSample& held) {
    const std::shared_ptr<const CpuTarget> target = targets_.Find(held.cgroup_id);
    if (target && held.period_ns == window_->period_ns) {
      const std::span<const uint64_t> frames(held.frames);
      Keep(target, {.process = held.process,
                    .thread = held.thread,
                    .stop = held.stop,
                    .kernel_frames = frames.first(held.kernel_frames),
                    .user_frames = frames.subspan(held.kernel_frames)});
      return true;
    }
    if (++held.windows < kHeldWindows) return false;
    ++counts_.unknown;
    return true;
  });
  for (const TargetTable::Verdict& verdict : targets_.EndWindow())
    SetVerdict(verdict.cgroup_id, verdict.wanted);
}

void Collector::OnSample(const RawSample& sample) {
  ++counts_.samples;
  std::shared_ptr<const CpuTarget> target;
  bool is_held = false;
  if (scope_ == CpuPipelineOptions::Scope::kContainers) {
    // First of all: nothing is read of a process that is not wanted.
    target = targets_.Find(sample.header.cgroup_id);
    is_held = !target && targets_.IsHeld(sample.header.cgroup_id);
    const std::string* const service =
        target || is_held ? nullptr : targets_.FindHostService(sample.header.cgroup_id);
    if (service != nullptr) target = HostTarget(HostServiceOf(sample.header, *service));
    if (!target && !is_held) {
      ++counts_.untargeted;
      return;
    }
  }
  const int64_t now_ns = clock_.MonotonicNanos();
  std::shared_ptr<Process> process;
  if ((sample.header.flags & FF_SAMPLE_KERNEL_THREAD) == 0) {
    process = processes_.Get({.pid = sample.header.pid,
                              .start_boottime = sample.header.start_boottime,
                              .exec_id = sample.header.exec_id},
                             TextOf(sample.header.comm), now_ns);
  }
  const ProcessImage* const image = process ? process->image.get() : nullptr;
  if (image == nullptr && !sample.user_frames.empty()) ++counts_.unread;
  bool is_new = false;
  const ThreadLabel thread{.id = sample.header.tid, .name = TextOf(sample.header.thread_comm)};
  const Sample kept{.process = process,
                    .thread = thread,
                    .stop = sample.header.stop,
                    .kernel_frames = sample.kernel_frames,
                    .user_frames = sample.user_frames};
  if (is_held) {
    Hold(sample, kept);
  } else {
    if (!target) {
      const std::string program = image == nullptr ? "" : image->executable;
      target = HostTarget(HostServiceOf(sample.header, program));
    }
    is_new = Keep(target, kept);
  }
  if (image != nullptr) {
    // A library came or went, or there is code made at run time.
    const bool has_changed =
        process->read_ns != now_ns && process->code_pages != sample.header.code_pages;
    if (has_changed || (is_new && !AllMapped(*image, sample.user_frames)))
      processes_.Refresh(process.get(), now_ns);
  }
  if (!process) return;
  if (process->read_ns == now_ns) process->code_pages = sample.header.code_pages;
  Announce(process.get());
}

void Collector::Announce(Process* process) {
  if (process->image && !process->is_announced)
    process->is_announced = unwinder_->Prepare(process->id, process->image);
}

Batch Collector::Rotate(std::unique_ptr<Window> window, uint64_t period_ns) {
  const int64_t now_monotonic_ns = clock_.MonotonicNanos();
  Batch batch;
  if (window_) {
    ReleaseHeld();
    window_->duration_ns = now_monotonic_ns - start_monotonic_ns_;
    for (const std::shared_ptr<Process>& process : window_processes_)
      window_->images.push_back(process->image);
    window_->threads = threads_.Take();
    batch.window = std::move(window_);
    batch.series = std::move(series_);
    processes_.EndWindow();
  }
  series_.clear();
  series_by_target_.clear();
  series_by_key_.clear();
  window_processes_.clear();
  process_numbers_.clear();
  ++windows_;
  std::erase_if(host_services_, [this](const auto& entry) {
    return windows_ - entry.second.window > kHostServiceWindows;
  });
  window_ = std::move(window);
  window_->period_ns = period_ns;
  last_start_ns_ = NextTime(clock_.WallNanos(), last_start_ns_);
  window_->start_ns = last_start_ns_;
  start_monotonic_ns_ = now_monotonic_ns;
  return batch;
}

}  // namespace flamefleet::agent
