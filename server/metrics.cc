#include "server/metrics.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "common/base/version.h"
#include "common/telemetry/metric_families.h"
#include "common/telemetry/process_metrics.h"
#include "server/round/reject.h"

namespace distro::server {
namespace {

constexpr size_t kMaxWorkers = 4096;
constexpr const char* kKinds[] = {"update", "result", "snapshot", "control"};  // of TransferKind
constexpr const char* kPhases[] = {"combine", "encode", "log", "broadcast"};
constexpr v1::MemberState kStates[] = {v1::MEMBER_STATE_JOINING, v1::MEMBER_STATE_ACTIVE,
                                       v1::MEMBER_STATE_LATE, v1::MEMBER_STATE_LEFT};
constexpr v1::RunState kRunStates[] = {v1::RUN_STATE_EMPTY, v1::RUN_STATE_WAITING,
                                       v1::RUN_STATE_TRAINING, v1::RUN_STATE_DRAINING,
                                       v1::RUN_STATE_DONE};
constexpr char kPrefix[] = "distro_aggregator_";

std::string RunStateLabel(v1::RunState state) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::RunState_Name(state), "RUN_STATE_"));
}

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

void Append(std::vector<prometheus::MetricFamily> from, std::vector<prometheus::MetricFamily>* to) {
  for (prometheus::MetricFamily& family : from) to->push_back(std::move(family));
}

uint64_t IncludedIn(const v1::RoundHeader& header, int member) {
  for (const v1::CommittedSegment& segment : header.segments()) {
    if ((static_cast<uint8_t>(segment.included()[member / 8]) >> (member % 8) & 1) != 0) return 1;
  }
  return 0;
}

}  // namespace

AggregatorMetrics::AggregatorMetrics(const Clock* clock, bool insecure)
    : clock_(clock), registry_(kPrefix) {
  registry_
      .AddGauge("build_info", "Version of the software; always 1.",
                {{"version", std::string(Version())}})
      ->Set(1);
  registry_.AddGauge("insecure", "1 when connections are not encrypted.")->Set(insecure ? 1 : 0);
  round_ = registry_.AddGauge("round", "The round that is open or opens next.");
  const std::string rounds_help = "Committed rounds, by whether all expected updates were in.";
  rounds_complete_ = registry_.AddCounter("rounds_total", rounds_help, {{"outcome", "complete"}});
  rounds_deadline_ = registry_.AddCounter("rounds_total", rounds_help, {{"outcome", "deadline"}});
  last_round_timestamp_ =
      registry_.AddGauge("last_round_timestamp_seconds",
                         "Wall time of the last commit; of the start before the first.");
  last_round_timestamp_->Set(absl::ToDoubleSeconds(clock->WallNow() - absl::UnixEpoch()));
  round_duration_ =
      registry_.AddHistogram("round_duration_seconds", "Open to commit.", SecondsBuckets());
  for (const char* phase : kPhases) {
    phases_[phase] = registry_.AddCounter(
        "phase_seconds_total", "Busy seconds by phase; phases may overlap.", {{"phase", phase}});
  }
  result_latency_ = registry_.AddHistogram("result_latency_seconds",
                                           "Last upload of a segment to its first result frame.",
                                           MillisecondsBuckets());
  updates_received_ =
      registry_.AddCounter("updates_received_total", "Updates that came complete and in time.");
  updates_expected_ = registry_.AddCounter("updates_expected_total",
                                           "Updates that rounds waited for when they opened.");
  for (const absl::string_view reason : kRejectReasons) {
    updates_rejected_[std::string(reason)] = registry_.AddCounter(
        "updates_rejected_total", "Uploads that were refused, or segments that came late.",
        {{"reason", std::string(reason)}});
  }
  for (const char* kind : kKinds) {
    received_.push_back(
        registry_.AddCounter("received_bytes_total", "Payload bytes received.", {{"kind", kind}}));
    sent_.push_back(registry_.AddCounter(
        "sent_bytes_total", "Payload bytes sent, to all receivers together.", {{"kind", kind}}));
  }
  result_size_ =
      registry_.AddGauge("result_size_bytes", "Payload bytes of the last round's result.");
  union_entries_ = registry_.AddGauge(
      "union_entries_ratio",
      "Coefficients with a vote per vote sent, of the last segment that closed.");
  agreement_ = registry_.AddGauge(
      "sign_agreement_ratio",
      "Sum of absolute votes per vote sent, of the last segment that closed; 1 when all agree.");
  mismatches_ = registry_.AddCounter("state_hash_mismatches_total",
                                     "State hashes that differed from their round's reference.");
  fsync_ = registry_.AddHistogram("log_fsync_seconds", "Time of each fsync of a commit.",
                                  MillisecondsBuckets());
  loss_ =
      registry_.AddGauge("loss", "Mean training loss of the last round's updates, nats a token.");
  tokens_ = registry_.AddCounter(
      "tokens_total", "Tokens of updates that were included, since this process started.");
}

void AggregatorMetrics::OnRoundOpened(RoundId round, int expected) {
  round_->Set(static_cast<double>(round.value()));
  updates_expected_->Increment(expected);
}

void AggregatorMetrics::OnUpdateReceived() { updates_received_->Increment(); }

void AggregatorMetrics::OnSegmentResult(const SegmentResult& result, absl::Duration latency) {
  OnPhase("combine", result.combine_time);
  OnPhase("encode", result.encode_time);
  result_latency_->Observe(Seconds(latency));
  if (result.sent_votes == 0) return;
  const auto votes = static_cast<double>(result.sent_votes);
  union_entries_->Set(static_cast<double>(result.entries) / votes);
  agreement_->Set(static_cast<double>(result.agreement) / votes);
}

void AggregatorMetrics::OnRoundCommitted(const CommittedRoundInfo& info) {
  (info.by_deadline ? rounds_deadline_ : rounds_complete_)->Increment();
  round_->Set(static_cast<double>(info.header->round() + 1));
  last_round_timestamp_->Set(absl::ToDoubleSeconds(clock_->WallNow() - absl::UnixEpoch()));
  round_duration_->Observe(Seconds(info.duration));
  result_size_->Set(static_cast<double>(info.result_bytes));
  tokens_->Increment(static_cast<double>(info.tokens));
  if (info.loss) loss_->Set(*info.loss);
  absl::MutexLock lock(&mu_);
  for (int i = 0; i < info.header->members_size(); ++i) {
    const std::string& name = info.header->members(i).name();
    if (included_.contains(name) || included_.size() < kMaxWorkers)
      included_[name] += IncludedIn(*info.header, i);
  }
}

void AggregatorMetrics::OnStateHashMismatch(int workers) { mismatches_->Increment(workers); }

void AggregatorMetrics::OnPhase(absl::string_view phase, absl::Duration time) {
  const auto it = phases_.find(phase);
  if (it != phases_.end()) it->second->Increment(Seconds(time));
}

void AggregatorMetrics::OnReceived(TransferKind kind, uint64_t bytes) {
  received_[static_cast<size_t>(kind)]->Increment(static_cast<double>(bytes));
}

void AggregatorMetrics::OnSent(TransferKind kind, uint64_t bytes) {
  sent_[static_cast<size_t>(kind)]->Increment(static_cast<double>(bytes));
}

void AggregatorMetrics::OnUploadRejected(absl::string_view reason) {
  const auto it = updates_rejected_.find(reason);
  if (it != updates_rejected_.end()) it->second->Increment();
}

void AggregatorMetrics::OnFsync(absl::Duration time) { fsync_->Observe(Seconds(time)); }

std::vector<prometheus::MetricFamily> AggregatorMetrics::Collect(const RunHost& host,
                                                                 const std::string& data_dir) {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  FamilyBuilder builder;
  const std::string prefix = kPrefix;
  const RoundManager* manager = host.manager();
  RunStatus status;
  status.state = v1::RUN_STATE_EMPTY;
  if (manager != nullptr) {
    status = manager->status();
    builder.AddGauge(prefix + "run_info", "The run; always 1.", {{"run", manager->run().run_id}},
                     1);
    builder.AddGauge(prefix + "min_workers", "Updates that a round needs at least.", {},
                     manager->run().config.min_workers());
    builder.AddGauge(prefix + "subscriber_lag_rounds",
                     "Rounds that the slowest subscriber lags behind.", {},
                     static_cast<double>(manager->MaxSubscriberLag()));
  }
  for (const v1::RunState state : kRunStates) {
    builder.AddGauge(prefix + "run_state", "1 for the state that the run is in.",
                     {{"state", RunStateLabel(state)}}, state == status.state);
  }
  std::map<v1::MemberState, int> counts;
  for (const Worker& worker : status.workers) ++counts[worker.state];
  for (const v1::MemberState state : kStates) {
    builder.AddGauge(prefix + "workers", "Workers by state.",
                     {{"state", std::string(MemberStateName(state))}}, counts[state]);
  }
  for (const Worker& worker : status.workers) {
    if (!worker.in_session()) continue;
    for (const v1::MemberState state : kStates) {
      builder.AddGauge(prefix + "worker_state", "1 for the state that the worker is in.",
                       {{"worker", worker.name}, {"state", std::string(MemberStateName(state))}},
                       state == worker.state);
    }
  }
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [name, count] : included_) {
      builder.AddCounter(prefix + "worker_included_updates_total",
                         "Rounds in which an update of the worker was included.",
                         {{"worker", name}}, static_cast<double>(count));
    }
  }
  builder.AddGauge(prefix + "log_bytes", "Bytes of the round log.", {},
                   static_cast<double>(host.log_bytes()));
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(data_dir, error);
  if (!error) {
    builder.AddGauge(prefix + "data_dir_free_bytes", "Bytes free for the data folder.", {},
                     static_cast<double>(space.available));
    builder.AddGauge(prefix + "data_dir_size_bytes", "Bytes of the data folder's file system.", {},
                     static_cast<double>(space.capacity));
  }
  Append(builder.Take(), &families);
  Append(ProcessMetrics(), &families);
  return families;
}

std::vector<prometheus::MetricFamily> AggregatorMetrics::CollectWorkers(const RunHost& host) {
  FamilyBuilder builder;
  const RoundManager* manager = host.manager();
  if (manager == nullptr) return {};
  const std::string prefix = "distro_worker_";
  for (const Worker& worker : manager->status().workers) {
    if (!worker.in_session() || worker.sequence == 0) continue;
    const MetricLabels labels = {{"worker", worker.name}};
    const v1::WorkerTelemetry& readings = worker.telemetry;
    builder.AddGauge(prefix + "round", "The first round that is not yet in the parameters.", labels,
                     static_cast<double>(worker.next_round));
    builder.AddGauge(prefix + "loss", "Training loss of the last own step, in nats a token.",
                     labels, readings.loss());
    builder.AddGauge(prefix + "grad_norm", "Norm of the last own gradient, before clipping.",
                     labels, readings.gradient_norm());
    builder.AddCounter(prefix + "tokens_total", "Tokens trained on.", labels,
                       static_cast<double>(readings.tokens()));
    builder.AddCounter(prefix + "sent_bytes_total", "Payload bytes sent.",
                       {{"worker", worker.name}, {"kind", "update"}},
                       static_cast<double>(readings.sent_bytes()));
    builder.AddCounter(prefix + "received_bytes_total", "Payload bytes received.",
                       {{"worker", worker.name}, {"kind", "result"}},
                       static_cast<double>(readings.received_bytes()));
    if (readings.has_evaluation_loss()) {
      builder.AddGauge(prefix + "eval_loss",
                       "Held-out loss of the last evaluation, in nats a token.", labels,
                       readings.evaluation_loss());
    }
  }
  return builder.Take();
}

}  // namespace distro::server
