#include "server/metrics/metrics.h"

#include <algorithm>

#include "common/base/version.h"
#include "common/method/methods.h"
#include "common/run/record/committed_round.h"
#include "server/call/upload_call.h"
#include "server/log/disk.h"

namespace distro::server {
namespace {

constexpr const char* kKinds[] = {"update", "result", "snapshot", "control"};  // of TransferKind
constexpr const char* kPhases[] = {"collect", "validate", "combine", "encode", "log", "broadcast"};
constexpr DiskOperation kDiskOperations[] = {
    DiskOperation::kCreateFolder, DiskOperation::kCreate,      DiskOperation::kWrite,
    DiskOperation::kFsync,        DiskOperation::kLink,        DiskOperation::kRename,
    DiskOperation::kUnlink,       DiskOperation::kFsyncFolder, DiskOperation::kPut,
    DiskOperation::kDelete};
constexpr const char* kRefusals[] = {"unauthenticated", "role", "wrong_name", "limit"};
constexpr const char* kCredentialFiles[] = {"certificate", "tokens"};

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

}  // namespace

AggregatorMetrics::AggregatorMetrics(const Clock* clock, bool insecure)
    : clock_(clock), registry_(kMetricPrefix) {
  registry_
      .AddGauge("build_info", "Version of the software; always 1.",
                {{"version", std::string(Version())}})
      ->Set(1);
  registry_.AddGauge("insecure", "1 when connections are not encrypted.")->Set(insecure ? 1 : 0);
  AddCredentials();
  const std::string rounds_help = "Committed rounds, by whether they include all expected updates.";
  rounds_complete_ = registry_.AddCounter("rounds_total", rounds_help, {{"outcome", "complete"}});
  rounds_deadline_ = registry_.AddCounter("rounds_total", rounds_help, {{"outcome", "deadline"}});
  last_round_timestamp_ =
      registry_.AddGauge("last_round_timestamp_seconds",
                         "Wall time of the last commit, or of the start before the first.");
  last_round_timestamp_->Set(absl::ToDoubleSeconds(clock->WallNow() - absl::UnixEpoch()));
  round_opened_timestamp_ = registry_.AddGauge(
      "round_opened_timestamp_seconds", "Wall time of the last opening of a round; 0: none.");
  round_opened_timestamp_->Set(0);
  round_duration_ = registry_.AddHistogram("round_duration_seconds", "From Open to commit.",
                                           RoundSecondsBuckets());
  for (const char* phase : kPhases) {
    phases_[phase] = registry_.AddCounter(
        "phase_seconds_total", "Busy seconds by phase; phases may overlap.", {{"phase", phase}});
  }
  result_latency_ = registry_.AddHistogram(
      "result_latency_seconds", "From the last upload of a segment to its first result frame.",
      MillisecondsBuckets());
  updates_received_ =
      registry_.AddCounter("updates_received_total", "Updates that arrived complete and in time.");
  updates_expected_ = registry_.AddCounter("updates_expected_total",
                                           "Updates that rounds waited for when they opened.");
  for (const absl::string_view reason : kRejectReasons) {
    updates_rejected_[std::string(reason)] =
        registry_.AddCounter("updates_rejected_total", "Refused uploads and late segments.",
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
      "Non-zero positions of the result per position sent, in the last segment that closed.");
  agreement_ = registry_.AddGauge(
      "sign_agreement_ratio",
      "Signs: sum of absolute votes per vote sent, in the last segment that closed; 1 when all "
      "agree.");
  mismatches_ =
      registry_.AddCounter("state_hash_mismatches_total",
                           "State hashes that differed from their round's reference: a worker's, "
                           "or an archiver's.");
  for (const absl::string_view reason : kMemberReasons) {
    member_changes_[std::string(reason)] =
        registry_.AddCounter("worker_changes_total", "Changes of workers' states, by reason.",
                             {{"reason", std::string(reason)}});
  }
  lateness_ = registry_.AddHistogram(
      "update_lateness_seconds",
      "Time from the end of a round to the arrival of a late update of it.", RoundSecondsBuckets());
  const std::string log_errors_help = "Failed writes, by operation; they are retried.";
  for (const DiskOperation operation : kDiskOperations) {
    const std::string name(DiskOperationName(operation));
    log_errors_[name] =
        registry_.AddCounter("log_errors_total", log_errors_help, {{"operation", name}});
  }
  log_errors_["other"] =
      registry_.AddCounter("log_errors_total", log_errors_help, {{"operation", "other"}});
  fsync_ = registry_.AddHistogram("log_fsync_seconds", "Time of each fsync of a commit.",
                                  MillisecondsBuckets());
  loss_ =
      registry_.AddGauge("loss", "Mean training loss of the last round's updates, nats a token.");
  tokens_ = registry_.AddCounter(
      "tokens_total", "Tokens of updates that were included, since this process started.");
}

void AggregatorMetrics::AddCredentials() {
  for (const char* reason : kRefusals) {
    calls_refused_[reason] = registry_.AddCounter(
        "calls_refused_total", "Calls refused because of the caller's identity or rate.",
        {{"reason", reason}});
  }
  for (const char* file : kCredentialFiles) {
    for (const bool ok : {false, true}) {
      reloads_[{file, ok}] =
          registry_.AddCounter("credential_reloads_total",
                               "Reloads of credentials after a change of their file or an error.",
                               {{"file", file}, {"outcome", ok ? "ok" : "error"}});
    }
  }
  certificate_expiry_ = registry_.AddGauge("tls_certificate_expiry_timestamp_seconds",
                                           "Expiry of the certificate in use.");
}

void AggregatorMetrics::OnCallRefused(absl::string_view reason) {
  const auto it = calls_refused_.find(reason);
  if (it != calls_refused_.end()) it->second->Increment();
}

void AggregatorMetrics::OnCredentialsReloaded(absl::string_view file, bool ok) {
  const auto it = reloads_.find({std::string(file), ok});
  if (it != reloads_.end()) it->second->Increment();
}

void AggregatorMetrics::SetCertificateExpiry(absl::Time expiry) {
  certificate_expiry_->Set(absl::ToDoubleSeconds(expiry - absl::UnixEpoch()));
}

void AggregatorMetrics::OnRoundOpened(RoundId, int expected) {
  updates_expected_->Increment(expected);
  round_opened_timestamp_->Set(absl::ToDoubleSeconds(clock_->WallNow() - absl::UnixEpoch()));
}

void AggregatorMetrics::OnUpdateReceived() { updates_received_->Increment(); }

void AggregatorMetrics::OnSegmentResult(const SegmentResult& result, absl::Duration latency) {
  OnPhase("combine", result.combine_time);
  OnPhase("encode", result.encode_time);
  result_latency_->Observe(Seconds(latency));
  if (result.sent_positions == 0) return;
  const auto sent = static_cast<double>(result.sent_positions);
  union_entries_->Set(static_cast<double>(result.entries) / sent);
  if (result.agreement) {
    agreement_->Set(static_cast<double>(*result.agreement) / sent);
  } else {
    agreement_->Clear();
  }
}

void AggregatorMetrics::OnRoundCommitted(const CommittedRoundInfo& info) {
  (info.by_deadline ? rounds_deadline_ : rounds_complete_)->Increment();
  last_round_timestamp_->Set(absl::ToDoubleSeconds(clock_->WallNow() - absl::UnixEpoch()));
  round_duration_->Observe(Seconds(info.duration));
  result_size_->Set(static_cast<double>(info.result_bytes));
  tokens_->Increment(static_cast<double>(info.tokens));
  if (info.loss) {
    loss_->Set(*info.loss);
  } else {
    loss_->Clear();
  }
  absl::MutexLock lock(&mu_);
  if (info.eval_loss) eval_loss_ = info.eval_loss;
  caps_ = MethodOf(info.header->step()).Caps(info.header->step());
  for (int i = 0; i < info.header->members_size(); ++i) {
    const std::string& name = info.header->members(i).name();
    if (Counted* const counted = Count(name, info.header->round()))
      counted->updates += IsIncluded(*info.header, i) ? 1 : 0;
  }
}

AggregatorMetrics::Counted* AggregatorMetrics::Count(const std::string& worker, uint64_t round) {
  auto it = included_.find(worker);
  if (it == included_.end()) {
    if (included_.size() >= kMaxCountedWorkers) {
      const auto oldest =
          std::ranges::min_element(included_, {}, [](const auto& w) { return w.second.round; });
      if (oldest->second.round >= round) return nullptr;
      included_.erase(oldest);
    }
    it = included_.try_emplace(worker).first;
  }
  it->second.round = round;
  return &it->second;
}

void AggregatorMetrics::OnStateHashMismatch(int workers) { mismatches_->Increment(workers); }

void AggregatorMetrics::OnMemberChange(absl::string_view reason) {
  const auto it = member_changes_.find(reason);
  if (it != member_changes_.end()) it->second->Increment();
}

void AggregatorMetrics::OnLateUpdate(absl::Duration lateness) {
  lateness_->Observe(Seconds(lateness));
}

void AggregatorMetrics::OnLogError(absl::string_view operation) {
  const auto it = log_errors_.find(operation);
  if (it != log_errors_.end()) it->second->Increment();
}

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

}  // namespace distro::server
