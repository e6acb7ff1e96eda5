// Rates of workers over about the last minute, out of the absolute counters that they report.
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

// Each is not set while it is not known: two reports of one process are needed, and something must
// have been transferred for a goodput.
struct WorkerRate {
  std::optional<double> tokens_per_second = {};
  std::optional<double> up_bytes_per_second = {};  // payload, over all time
  std::optional<double> down_bytes_per_second = {};
  std::optional<double> up_goodput = {};  // payload bytes a second in which bytes were in flight
  std::optional<double> down_goodput = {};
  // Shares of the training thread's time in which it waited for its upload, for others, for its
  // download.
  std::optional<double> upload_ratio = {};
  std::optional<double> wait_ratio = {};
  std::optional<double> download_ratio = {};
};

class WorkerRates {
 public:
  // Takes the workers' last readings; those that were taken before, and workers that are not among
  // them any more, cost nothing and are forgotten. To be called every few seconds, and before Of().
  void Take(const std::vector<WorkerReport>& reports);
  // Of a worker that the last Take() saw; without it nothing is known.
  WorkerRate Of(const std::string& worker) const;

 private:
  struct Sample {
    absl::Duration at;
    double tokens = 0, sent = 0, received = 0, upload_seconds = 0, download_seconds = 0;
    double upload = 0, wait = 0, download = 0, all_phases = 0;
  };
  struct Samples {
    uint64_t incarnation = 0;
    std::deque<Sample> samples = {};  // ascending; only the newest may be close to the one before
    bool seen = false;
  };
  static Sample SampleOf(const WorkerReport& report);
  static void Add(const Sample& sample, std::deque<Sample>* samples);

  mutable absl::Mutex mu_;
  std::map<std::string, Samples, std::less<>> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
