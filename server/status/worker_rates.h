// Computes rates of workers over about the last minute from the absolute counters that they report.
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/session/worker_reports.h"

namespace distro::server {

inline constexpr absl::Duration kRateWindow = absl::Minutes(1);

// A value is not set while it is unknown: it needs two reports of one process, and a goodput needs
// a transfer.
struct WorkerRate {
  std::optional<double> tokens_per_second = {};
  std::optional<double> up_bytes_per_second = {};  // payload, over all time
  std::optional<double> down_bytes_per_second = {};
  std::optional<double> up_goodput = {};  // payload, over time with bytes in flight
  std::optional<double> down_goodput = {};
  // Shares of the training thread's time spent waiting for its upload, for others, and for its
  // download.
  std::optional<double> upload_ratio = {};
  std::optional<double> wait_ratio = {};
  std::optional<double> download_ratio = {};
};

class WorkerRates {
 public:
  // Adds the workers' last readings. Ignores readings that were added before, and drops workers
  // that are no longer present. Call every few seconds, and before Of().
  void Take(const std::vector<WorkerReport>& reports);
  // The rates of a worker that was in the last Take(); otherwise none are set.
  WorkerRate Of(const std::string& worker) const;

 private:
  struct Sample {
    absl::Duration at;
    double tokens = 0, sent = 0, received = 0, upload_seconds = 0, download_seconds = 0;
    double upload = 0, wait = 0, download = 0, all_phases = 0;
  };
  struct Samples {
    uint64_t incarnation = 0;
    std::deque<Sample> samples = {};  // ascending; only the newest may be close to its predecessor
    bool seen = false;
  };
  static Sample SampleOf(const WorkerReport& report);
  static void Add(const Sample& sample, std::deque<Sample>* samples);

  mutable absl::Mutex mu_;
  std::map<std::string, Samples, std::less<>> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
