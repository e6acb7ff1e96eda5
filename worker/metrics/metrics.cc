#include "worker/metrics/metrics.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/net/telemetry/metric_families.h"
#include "common/net/telemetry/process_metrics.h"
#include "common/net/telemetry/serve_metrics.h"
#include "common/net/telemetry/worker_families.h"

namespace distro::worker {

std::vector<prometheus::MetricFamily> WorkerMetrics::Collect() {
  WorkerReadings readings;
  v1::WorkerTelemetry telemetry;
  const std::vector<GpuReading> gpus = ReadGpus();
  {
    absl::MutexLock lock(&mu_);
    Read(gpus);
    telemetry = shown_;
    readings.next_round = next_round_;
    readings.failed_writes = {.checkpoint = failed_checkpoints_, .state = failed_saves_};
    if (transfers_.last_report != absl::InfinitePast())
      readings.last_report_seconds =
          absl::ToDoubleSeconds(transfers_.last_report - absl::UnixEpoch());
  }
  readings.telemetry = &telemetry;
  std::vector<prometheus::MetricFamily> families = WorkerFamilies({&readings, 1});
  AppendFamilies(ProcessMetrics(), &families);
  return families;
}

ReadyReport WorkerMetrics::Ready() {
  const bool joined = ready_;
  absl::MutexLock lock(&mu_);
  if (read_transfers_) transfers_ = read_transfers_();
  const absl::Duration now = phases_->clock().MonotonicNow();
  const absl::Duration silence = now - transfers_.last_answer.value_or(now);
  const bool answers = silence < kMostSilence;
  return {.ready = joined && answers,
          .checks = {{.name = "run", .ok = joined, .detail = joined ? "joined" : "not joined yet"},
                     {.name = "aggregator",
                      .ok = answers,
                      .detail = answers ? ""
                                        : absl::StrCat("no heartbeat was answered for ",
                                                       absl::ToInt64Seconds(silence), " s")},
                     {.name = "work", .ok = uncounted_.empty(), .detail = uncounted_}}};
}

}  // namespace distro::worker
