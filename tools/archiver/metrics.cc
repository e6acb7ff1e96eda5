#include "tools/archiver/metrics.h"

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/net/telemetry/metric_families.h"
#include "common/net/telemetry/process_metrics.h"
#include "common/net/telemetry/serve_metrics.h"

namespace distro::tools {

absl::string_view ArchiverPhaseName(ArchiverPhase phase) {
  constexpr absl::string_view kNames[kArchiverPhases] = {"wait", "apply", "save", "publish"};
  return kNames[static_cast<int>(phase)];
}

ArchiverMetrics::ArchiverMetrics(const Clock* clock_in) : clock(clock_in) {
  registry
      .AddGauge("build_info", "1, with the version of this build.",
                {{"version", std::string(Version())}})
      ->Set(1);
  round = registry.AddGauge("round", "The first round that is not yet in the parameters.");
  lag_rounds = registry.AddGauge("lag_rounds",
                                 "Rounds by which the replay is behind the aggregator's head.");
  snapshot_round = registry.AddGauge("snapshot_round", "Round of the snapshot in the data folder.");
  replayed_rounds = registry.AddCounter("replayed_rounds_total", "Rounds that were replayed.");
  state_hash_mismatches = registry.AddCounter(
      "state_hash_mismatches_total", "State hashes of workers that differed from this replica's.");
  snapshots_uploaded = registry.AddCounter("snapshots_uploaded_total",
                                           "Snapshots that the aggregator verified and stored.");
  folders_published = registry.AddCounter("folders_published_total", "Model folders published.");
  const std::string failures = "Failed operations on snapshots and model folders.";
  failures_save = registry.AddCounter("failures_total", failures, {{"operation", "save"}});
  failures_publish = registry.AddCounter("failures_total", failures, {{"operation", "publish"}});
  failures_upload = registry.AddCounter("failures_total", failures, {{"operation", "upload"}});
  failures_command = registry.AddCounter("failures_total", failures, {{"operation", "command"}});
  reconnects = registry.AddCounter("reconnects_total", "Reopened subscriptions.");
  received_bytes = registry.AddCounter("received_bytes_total", "Payload bytes of replayed rounds.");
  for (int i = 0; i < kArchiverPhases; ++i) {
    phases[i] = registry.AddCounter(
        "phase_seconds_total", "Time of the replaying thread by phase, in seconds.",
        {{"phase", std::string(ArchiverPhaseName(static_cast<ArchiverPhase>(i)))}});
  }
}

std::vector<prometheus::MetricFamily> ArchiverMetrics::Collect() {
  std::vector<prometheus::MetricFamily> families = registry.Collect();
  AppendFamilies(ProcessMetrics(), &families);
  return families;
}

ReadyReport ArchiverMetrics::Ready() const {
  const bool follows = ready, slow = falls_behind;
  const int64_t at = answered_at;
  const absl::Duration silence =
      at == kNever ? absl::ZeroDuration() : clock->MonotonicNow() - absl::Nanoseconds(at);
  const bool answers = silence < kMostSilence;
  return {.ready = follows && answers,
          .checks = {{.name = "replica",
                      .ok = follows,
                      .detail = follows ? "follows the log" : "no parameters yet"},
                     {.name = "pace", .ok = !slow, .detail = slow ? "falls behind" : ""},
                     {.name = "aggregator",
                      .ok = answers,
                      .detail = answers ? ""
                                        : absl::StrCat("no answer for ",
                                                       absl::ToInt64Seconds(silence), " s")}}};
}

}  // namespace distro::tools
