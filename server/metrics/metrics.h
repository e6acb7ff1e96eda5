// Exports the aggregator's metrics on /metrics, and those of its workers on /metrics/workers
// (docs/metrics.md). Counters of events exist from the start; states are read at each scrape.
// Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/net/telemetry/metric_families.h"
#include "common/net/telemetry/metrics.h"
#include "server/auth/tokens/token_store.h"
#include "server/call/observers.h"
#include "server/round/run_host.h"
#include "server/round/run_observer.h"

namespace distro::server {

inline constexpr char kMetricPrefix[] = "distro_aggregator_";
// Maximum number of workers whose included updates are counted: those most recently in a record.
inline constexpr size_t kMaxCountedWorkers = 4096;

class AggregatorMetrics final : public RunObserver, public TransferObserver, public AuthObserver {
 public:
  // `clock` is borrowed: wall time of the last round.
  AggregatorMetrics(const Clock* clock, bool insecure);

  void OnRoundOpened(RoundId, int expected) override;
  void OnUpdateReceived() override;
  void OnSegmentResult(const SegmentResult& result, absl::Duration latency) override;
  void OnRoundCommitted(const CommittedRoundInfo& info) override;
  void OnStateHashMismatch(int workers) override;
  void OnMemberChange(absl::string_view reason) override;
  void OnLateUpdate(absl::Duration lateness) override;
  void OnLogError(absl::string_view operation) override;
  void OnPhase(absl::string_view phase, absl::Duration time) override;

  void OnReceived(TransferKind kind, uint64_t bytes) override;
  void OnSent(TransferKind kind, uint64_t bytes) override;
  void OnUploadRejected(absl::string_view reason) override;
  void OnDroppedValues(int values) override { registry_.CountDropped(values); }

  void OnCallRefused(absl::string_view reason) override;
  void OnCredentialsReloaded(absl::string_view file, bool ok) override;

  // Sets when the certificate for new connections expires.
  void SetCertificateExpiry(absl::Time expiry);
  void OnFsync(absl::Duration time);

  // All families: these, the run's state, the folder's disk, the process.
  std::vector<prometheus::MetricFamily> Collect(const RunHost& host, const std::string& data_dir);

 private:
  struct Counted {
    uint64_t updates = 0;
    uint64_t round = 0;  // of the last record that names it
  };
  void AddCredentials();
  // Adds the values from the records of this process's rounds.
  void AddRecorded(FamilyBuilder* builder) ABSL_LOCKS_EXCLUDED(mu_);
  // nullptr if this round already names kMaxCountedWorkers others.
  Counted* Count(const std::string& worker, uint64_t round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  MetricsRegistry registry_;
  // Constant after construction; the metrics have their own locking.
  Counter* rounds_complete_;
  Counter* rounds_deadline_;
  Gauge* last_round_timestamp_;
  Gauge* round_opened_timestamp_;
  Histogram* round_duration_;
  std::map<std::string, Counter*, std::less<>> phases_;
  Histogram* result_latency_;
  Counter* updates_received_;
  Counter* updates_expected_;
  std::map<std::string, Counter*, std::less<>> updates_rejected_;
  std::vector<Counter*> received_;  // [TransferKind]
  std::vector<Counter*> sent_;      // [TransferKind]
  Gauge* result_size_;
  Gauge* union_entries_;
  Gauge* agreement_;
  Counter* mismatches_;
  std::map<std::string, Counter*, std::less<>> member_changes_;
  Histogram* lateness_;
  std::map<std::string, Counter*, std::less<>> log_errors_;
  Histogram* fsync_;
  std::map<std::string, Counter*, std::less<>> calls_refused_;
  std::map<std::pair<std::string, bool>, Counter*> reloads_;
  Gauge* certificate_expiry_;
  Gauge* loss_;
  Counter* tokens_;
  absl::Mutex mu_;
  std::optional<double> eval_loss_ ABSL_GUARDED_BY(mu_);
  std::vector<double> caps_ ABSL_GUARDED_BY(mu_);                 // Method::Caps of the last record
  std::map<std::string, Counted> included_ ABSL_GUARDED_BY(mu_);  // at most kMaxCountedWorkers
};

}  // namespace distro::server
