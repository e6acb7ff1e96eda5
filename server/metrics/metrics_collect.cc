// AggregatorMetrics: states, which are read at each scrape.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "common/base/disk_space.h"
#include "common/method/methods.h"
#include "common/net/telemetry/metric_families.h"
#include "common/net/telemetry/process_metrics.h"
#include "server/metrics/metrics.h"
#include "server/session/transition.h"

namespace distro::server {
namespace {

constexpr v1::RunState kRunStates[] = {v1::RUN_STATE_EMPTY,    v1::RUN_STATE_WAITING,
                                       v1::RUN_STATE_TRAINING, v1::RUN_STATE_PAUSED,
                                       v1::RUN_STATE_DRAINING, v1::RUN_STATE_DONE};

// Whether the worker is in session or quarantined, and so of interest to an operator.
bool IsShown(const Worker& worker) { return worker.state != v1::MEMBER_STATE_LEFT; }

void AddRun(const RunHost& host, const RunStatus& status, FamilyBuilder* builder) {
  const std::string prefix = kMetricPrefix;
  if (const RoundManager* manager = host.manager()) {
    const RunIdentity& run = manager->run();
    builder->AddGauge(
        prefix + "run_info", "The run; always 1.",
        {{"run_id", run.run_id}, {"method", std::string(MethodOf(run.config).name())}}, 1);
    builder->AddGauge(prefix + "min_workers", "Minimum number of updates of a round.", {},
                      run.config.min_workers());
    builder->AddGauge(prefix + "subscriber_lag_rounds",
                      "Rounds by which the slowest subscriber is behind.", {},
                      static_cast<double>(manager->MaxSubscriberLag()));
    const bool has_deadline = status.deadline != absl::InfiniteDuration();
    builder->AddGauge(prefix + "round_deadline_seconds",
                      "From Open to the deadline of the round; 0 without one.", {},
                      has_deadline ? absl::ToDoubleSeconds(status.deadline) : 0);
    builder->AddGauge(prefix + "log_damaged_records",
                      "Records that a follower found damaged and none has read completely since.",
                      {}, static_cast<double>(manager->DamagedRecordCount()));
    builder->AddGauge(prefix + "snapshot_round", "First round after the newest snapshot.", {},
                      static_cast<double>(manager->newest_snapshot().round()));
  }
  builder->AddGauge(prefix + "round", "The round that is open or opens next.", {},
                    static_cast<double>(status.round.value()));
  for (const v1::RunState state : kRunStates) {
    builder->AddGauge(prefix + "run_state", "1 for the state that the run is in.",
                      {{"state", RunStateName(state)}}, state == status.state);
  }
}

void AddWorkers(const RunStatus& status, FamilyBuilder* builder) {
  const std::string prefix = kMetricPrefix;
  std::map<v1::MemberState, int> counts;
  for (const Worker& worker : status.workers) ++counts[worker.state];
  for (const v1::MemberState state : kMemberStates) {
    builder->AddGauge(prefix + "workers", "Workers by state.",
                      {{"state", std::string(MemberStateName(state))}}, counts[state]);
  }
  for (size_t i = 0; i < status.workers.size(); ++i) {
    const Worker& worker = status.workers[i];
    if (!IsShown(worker)) continue;
    for (const v1::MemberState state : kMemberStates) {
      builder->AddGauge(prefix + "worker_state", "1 for the state that the worker is in.",
                        {{"worker", worker.name}, {"state", std::string(MemberStateName(state))}},
                        state == worker.state);
    }
    builder->AddGauge(prefix + "worker_agreement_score",
                      "Agreeing minus opposing votes, over the square root of their number, in "
                      "recent rounds; a worker opposes below -6 and a tenth of the votes.",
                      {{"worker", worker.name}}, status.agreement[i]);
  }
}

void AddDisk(const std::string& data_dir, FamilyBuilder* builder) {
  const std::string prefix = kMetricPrefix;
  const std::optional<DiskSpace> space = SpaceOf(data_dir);
  if (!space) return;
  builder->AddGauge(prefix + "data_dir_free_bytes", "Bytes free for the data folder.", {},
                    static_cast<double>(space->free_bytes));
  builder->AddGauge(prefix + "data_dir_size_bytes", "Bytes of the data folder's file system.", {},
                    static_cast<double>(space->bytes));
  builder->AddGauge(prefix + "data_dir_free_files",
                    "Files that the file system of the data folder still has room for.", {},
                    static_cast<double>(space->free_files));
  builder->AddGauge(prefix + "data_dir_size_files",
                    "Inodes of the data folder's file system; 0: it has no limit of them.", {},
                    static_cast<double>(space->files));
}

void AddCaps(const std::vector<double>& caps, FamilyBuilder* builder) {
  if (caps.empty()) return;
  const auto [least, largest] = std::ranges::minmax(caps);
  const auto add = [builder](const char* which, double cap) {
    builder->AddGauge(std::string(kMetricPrefix) + "scale_cap",
                      "Least and largest cap of a tensor's scales, of the last round.",
                      {{"bound", which}}, cap);
  };
  add("least", least);
  add("largest", largest);
}

}  // namespace

void AggregatorMetrics::AddRecorded(FamilyBuilder* builder) {
  const std::string prefix = kMetricPrefix;
  absl::MutexLock lock(&mu_);
  if (eval_loss_) {
    builder->AddGauge(prefix + "eval_loss",
                      "Median held-out loss of the workers' last evaluations, nats a token.", {},
                      *eval_loss_);
  }
  AddCaps(caps_, builder);
  for (const auto& [name, counted] : included_) {
    builder->AddCounter(prefix + "worker_included_updates_total",
                        "Rounds in which an update of the worker was included.", {{"worker", name}},
                        static_cast<double>(counted.updates));
  }
}

std::vector<prometheus::MetricFamily> AggregatorMetrics::Collect(const RunHost& host,
                                                                 const std::string& data_dir) {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  FamilyBuilder builder;
  RunStatus status;
  status.state = v1::RUN_STATE_EMPTY;
  if (const RoundManager* manager = host.manager()) status = manager->status();
  AddRun(host, status, &builder);
  AddWorkers(status, &builder);
  AddRecorded(&builder);
  builder.AddGauge(std::string(kMetricPrefix) + "log_bytes", "Bytes of the round log.", {},
                   static_cast<double>(host.log_bytes()));
  builder.AddGauge(std::string(kMetricPrefix) + "log_files", "Files of the round log.", {},
                   static_cast<double>(host.log_files()));
  AddDisk(data_dir, &builder);
  AppendFamilies(builder.Take(), &families);
  AppendFamilies(ProcessMetrics(), &families);
  return families;
}

}  // namespace distro::server
