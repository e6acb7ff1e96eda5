// One worker's connection to a LocalAggregator. The last Upload of a round combines it; nothing
// else takes long. Thread-safety as in Exchange.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/client/exchange/exchange.h"
#include "common/client/exchange/transfer_meter.h"
#include "common/feed/event_queue.h"
#include "common/simulation/local_aggregator.h"

namespace distro {

class LocalExchange final : public Exchange {
 public:
  // `aggregator` is borrowed.
  explicit LocalExchange(LocalAggregator* aggregator);
  ~LocalExchange() override;

  // FailedPrecondition: the run has started, or the data are not the run's. Does not wait for the
  // other workers. A second Join, with a LocalAggregator that keeps its log, repeats every round
  // from the first.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override;
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot, const std::string& path) override;
  // NotFound: a run of one process has none.
  absl::Status DownloadCompanion(const v1::CompanionFile& file, const std::string& path) override;
  absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) override;
  absl::StatusOr<RoundEvent> Next() override;
  bool Ready() override { return queue()->Ready(); }
  // If the update is refused, this worker's Next returns the status.
  void Upload(RoundUpdate update) override;
  void Report(RoundId next_round, uint64_t log_hash) override {}
  void Leave(const std::string& reason) override;
  void Stop() override;
  bool stopped() const override;
  TransferStats stats() const override { return meter_.stats(absl::ZeroDuration()); }

 private:
  std::shared_ptr<EventQueue> queue() const;

  LocalAggregator* const aggregator_;
  TransferMeter meter_;        // has its own locking
  v1::WorkerIdentity worker_;  // of the calling thread; no name before Join and after Leave

  mutable absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // Not bounded: a round cannot close without this worker. Replaced by each Join.
  std::shared_ptr<EventQueue> queue_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
