// SPDX-License-Identifier: Apache-2.0
#include "agent/debuginfo/debuginfod.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/http/client.h"
#include "base/http/url.h"
#include "base/log.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

constexpr char kSuffix[] = ".debug";
constexpr char kPartialName[] = "/partial";
constexpr std::chrono::seconds kMaxSilence{30};
constexpr std::chrono::minutes kMaxFetchTime{10};
// After a server that could not be reached: others are not asked for at once either.
constexpr std::chrono::seconds kPauseAfterFailure{10};
constexpr int64_t kWhileAsked = std::numeric_limits<int64_t>::max();

CounterMetric Files(Metrics* metrics, const std::string& result) {
  return metrics->Counter("flamefleet_agent_debug_files_total",
                          "Debug files that debuginfod servers were asked for, by result.",
                          {{"result", result}});
}

// A new file that takes pieces up to a bound.
class Partial {
 public:
  explicit Partial(UniqueFd fd) : fd_(std::move(fd)) {}

  Status Add(std::string_view piece) {
    if (bytes_ == 0 && !piece.starts_with(std::string_view(ELFMAG, SELFMAG)))
      return InvalidArgumentError("what came is no ELF file");
    bytes_ += piece.size();
    if (bytes_ > kMaxDebugFileBytes) {
      return ResourceExhaustedError("it has over " + std::to_string(kMaxDebugFileBytes >> 20) +
                                    " MiB");
    }
    return WriteAll(fd_.get(), piece, "debug file");
  }
  uint64_t bytes() const { return bytes_; }

 private:
  const UniqueFd fd_;
  uint64_t bytes_ = 0;
};

}  // namespace

Debuginfod::Debuginfod(std::string directory, Metrics* metrics)
    : directory_(std::move(directory)),
      fetched_(Files(metrics, "fetched")),
      missing_(Files(metrics, "missing")),
      too_large_(Files(metrics, "too_large")),
      failed_(Files(metrics, "failed")),
      bytes_metric_(metrics->Gauge("flamefleet_agent_debug_file_bytes",
                                   "Disk that the debug files of debuginfod servers take.")) {}

Debuginfod::~Debuginfod() = default;

std::string Debuginfod::PathOf(const std::string& build_id) const {
  return directory_ + "/" + build_id + kSuffix;
}

Status Debuginfod::OpenDirectory() {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  FF_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(directory_, O_PATH | O_DIRECTORY));
  const MutexLock lock(&mutex_);
  root_ = std::make_shared<const RootDirectory>(std::move(fd));
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::filesystem::path& path = entry.path();
    std::error_code no_size;
    const uint64_t bytes = entry.file_size(no_size);
    if (path.extension() != kSuffix || no_size) continue;
    files_[path.stem()] = {.bytes = bytes};
    bytes_ += bytes;
  }
  bytes_metric_.Set(static_cast<double>(bytes_));
  return OkStatus();
}

void Debuginfod::SetServers(std::vector<std::string> servers) {
  {
    const MutexLock lock(&mutex_);
    if (servers == servers_) return;
    servers_ = std::move(servers);
    asked_.clear();  // the new ones may have what the others had not
    if (servers_.empty() || root_) return;
  }
  if (const Status opened = OpenDirectory(); !opened.ok()) {
    Log(LogLevel::kError, "debug files cannot be kept, none is fetched", {{"error", opened}});
    return;
  }
  thread_ = StartThread("ff-debuginfo", [this](const std::stop_token& stop) { Run(stop); });
}

std::shared_ptr<const MappedFile> Debuginfod::Find(const std::string& build_id) {
  std::shared_ptr<const RootDirectory> root;
  {
    const MutexLock lock(&mutex_);
    if (servers_.empty() || !root_ || build_id.empty()) return nullptr;
    const auto found = files_.find(build_id);
    if (found == files_.end()) {
      Ask(build_id);
      return nullptr;
    }
    found->second.last_use = ++uses_;
    root = root_;
  }
  Result<MappedFile> file = root->OpenFile("/" + build_id + kSuffix);
  if (file.ok()) return std::make_shared<const MappedFile>(*std::move(file));
  const MutexLock lock(&mutex_);
  Drop(build_id);  // somebody removed it
  return nullptr;
}

void Debuginfod::Drop(const std::string& build_id) {
  const auto file = files_.find(build_id);
  if (file == files_.end()) return;
  bytes_ -= file->second.bytes;
  files_.erase(file);
  bytes_metric_.Set(static_cast<double>(bytes_));
}

void Debuginfod::Ask(const std::string& build_id) {
  const int64_t now_ns = SystemClock().MonotonicNanos();
  const auto known = asked_.find(build_id);
  if (known != asked_.end() && known->second > now_ns) return;
  if (asked_.size() >= kMaxAsked)
    std::erase_if(asked_, [now_ns](const auto& item) { return item.second <= now_ns; });
  std::string wanted = build_id;
  if (asked_.size() < kMaxAsked && queue_.TryPush(wanted)) asked_[build_id] = kWhileAsked;
}

void Debuginfod::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::optional<std::string> build_id = queue_.Pop(stop, std::chrono::hours(1));
    if (!build_id) continue;
    const Outcome result = Fetch(*build_id, stop);
    if (stop.stop_requested()) return;
    (result == Outcome::kFetched    ? fetched_
     : result == Outcome::kMissing  ? missing_
     : result == Outcome::kTooLarge ? too_large_
                                    : failed_)
        .Increment();
    {
      const MutexLock lock(&mutex_);
      const std::chrono::nanoseconds pause =
          result == Outcome::kFailed ? std::chrono::nanoseconds(kFailedFor) : kMissingFor;
      if (result == Outcome::kFetched)
        asked_.erase(*build_id);
      else
        asked_[*build_id] = SystemClock().MonotonicNanos() + pause.count();
    }
    if (result == Outcome::kFailed) WaitForStop(stop, kPauseAfterFailure);
  }
}

Debuginfod::Outcome Debuginfod::Fetch(const std::string& build_id, const std::stop_token& stop) {
  std::vector<std::string> servers;
  {
    const MutexLock lock(&mutex_);
    servers = servers_;
  }
  Outcome worst = Outcome::kMissing;
  for (const std::string& server : servers) {
    const Outcome result = FetchFrom(server, build_id, stop);
    if (result == Outcome::kFetched || stop.stop_requested()) return result;
    worst = std::max(worst, result);
  }
  return worst;
}

Debuginfod::Outcome Debuginfod::FetchFrom(const std::string& server, const std::string& build_id,
                                          const std::stop_token& stop) {
  const auto failed = [&](const Status& cause) {
    Log(LogLevel::kWarn, "debug file not fetched",
        {{"server", server}, {"build_id", build_id}, {"error", cause}});
    return cause.code() == StatusCode::kResourceExhausted ? Outcome::kTooLarge : Outcome::kFailed;
  };
  const auto [base_url, prefix] = SplitBaseUrl(server);
  const auto http = HttpClient::Create({.base_url = base_url});
  if (!http.ok()) return failed(http.status());
  const std::string partial_path = directory_ + kPartialName;
  auto fd = OpenFile(partial_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (!fd.ok()) return failed(fd.status());
  Partial partial(*std::move(fd));
  int status = 0;
  const auto answer = (*http)->Stream(
      {.target = prefix + "/buildid/" + build_id + "/debuginfo",
       .idle_timeout = kMaxSilence,
       .total_timeout = kMaxFetchTime},
      [&status](const HttpResponse& head) { status = head.status; },
      [&](std::string_view piece) { return status == 200 ? partial.Add(piece) : OkStatus(); },
      stop);
  if (answer.ok() && status == 404) return Outcome::kMissing;
  if (!answer.ok()) return failed(answer.status());
  if (status != 200 || partial.bytes() == 0) {
    return failed(UnavailableError("the server answers with status " + std::to_string(status) +
                                   " and " + std::to_string(partial.bytes()) + " bytes"));
  }
  if (::rename(partial_path.c_str(), PathOf(build_id).c_str()) != 0)
    return failed(ErrnoError(errno, "rename " + partial_path));
  Keep(build_id, partial.bytes());
  return Outcome::kFetched;
}

void Debuginfod::Keep(const std::string& build_id, uint64_t bytes) {
  const MutexLock lock(&mutex_);
  files_[build_id] = {.bytes = bytes, .last_use = ++uses_};
  bytes_ += bytes;
  // A file that is in use stays until it is closed.
  while (bytes_ > kMaxDebugFilesBytes && files_.size() > 1) {
    const auto oldest =
        std::ranges::min_element(files_, {}, [](const auto& item) { return item.second.last_use; });
    ::unlink(PathOf(oldest->first).c_str());
    Drop(std::string(oldest->first));  // a copy: it goes with the file
  }
  bytes_metric_.Set(static_cast<double>(bytes_));
}

}  // namespace flamefleet::agent
