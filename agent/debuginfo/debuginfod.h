// SPDX-License-Identifier: Apache-2.0
// Debuginfod: debug files of stripped programs, by build ID, from debuginfod servers. A look-up
// never waits: what is not here is asked for, and is there when it is looked up again.
//
// What a server sends is written to disk as it arrives and parsed by the parsing child like any
// file of a container; the child refuses one of another build ID.
//
// Thread: any. It owns "ff-debuginfo" once there are servers. Bounds: kMaxDebugFileBytes of a file,
// kMaxDebugFilesBytes of all, the least recently used go first; kMaxAsked build IDs wait or are
// known to be nowhere. Errors: none; counted by result, and the cause is logged. Source:
// debuginfod(8), "Webapi"
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "agent/host/mapped_file.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/queue.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr uint64_t kMaxDebugFileBytes = 512 << 20;
constexpr uint64_t kMaxDebugFilesBytes = 1 << 30;
constexpr size_t kMaxAsked = 4096;
constexpr std::chrono::hours kMissingFor{1};   // a server has no such file: asked again after it
constexpr std::chrono::minutes kFailedFor{5};  // none could be asked, or the file is of no use

class Debuginfod {
 public:
  // `directory` is made with the first server; files of an earlier run that are in it are used.
  Debuginfod(std::string directory, Metrics* metrics);
  ~Debuginfod();
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;

  // Base URLs, asked in this order. Without any nothing is asked, and nothing found.
  void SetServers(std::vector<std::string> servers);

  // Null while it is not here. `build_id` in hexadecimal.
  std::shared_ptr<const MappedFile> Find(const std::string& build_id);

 private:
  struct File {
    uint64_t bytes = 0;
    uint64_t last_use = 0;
  };
  enum class Outcome { kFetched, kMissing, kTooLarge, kFailed };

  Status OpenDirectory();
  void Ask(const std::string& build_id) FF_REQUIRES(mutex_);
  void Run(const std::stop_token& stop);
  Outcome Fetch(const std::string& build_id, const std::stop_token& stop);
  Outcome FetchFrom(const std::string& server, const std::string& build_id,
                    const std::stop_token& stop);
  void Keep(const std::string& build_id, uint64_t bytes);
  void Drop(const std::string& build_id) FF_REQUIRES(mutex_);
  std::string PathOf(const std::string& build_id) const;

  const std::string directory_;
  CounterMetric fetched_;
  CounterMetric missing_;
  CounterMetric too_large_;
  CounterMetric failed_;
  GaugeMetric bytes_metric_;

  Mutex mutex_;
  std::vector<std::string> servers_ FF_GUARDED_BY(mutex_);
  std::shared_ptr<const RootDirectory> root_ FF_GUARDED_BY(mutex_);
  std::map<std::string, File> files_ FF_GUARDED_BY(mutex_);     // by build ID
  std::map<std::string, int64_t> asked_ FF_GUARDED_BY(mutex_);  // until when not again
  uint64_t bytes_ FF_GUARDED_BY(mutex_) = 0;
  uint64_t uses_ FF_GUARDED_BY(mutex_) = 0;

  BoundedQueue<std::string> queue_{kMaxAsked};
  std::jthread thread_;
};

}  // namespace flamefleet::agent
