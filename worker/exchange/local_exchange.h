// One worker's end of a LocalAggregator. Upload combines the round when it is the last one; nothing else takes time.
// Thread-safety as in Exchange.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "worker/exchange/event_queue.h"
#include "worker/exchange/exchange.h"
#include "worker/exchange/local_aggregator.h"
#include "worker/exchange/transfer_meter.h"

namespace distro::worker {

class LocalExchange final : public Exchange {
 public:
  // `aggregator` is borrowed.
  explicit LocalExchange(LocalAggregator* aggregator);
  ~LocalExchange() override;

  // FailedPrecondition: the run has begun, or the data are not the run's. Does not wait for the other workers.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override;
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot, const std::string& path) override;
  absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) override;
  absl::StatusOr<RoundEvent> Next() override;
  bool Ready() override { return queue_->Ready(); }
  // An update that is refused ends this worker's Next with the reason: there is no network to blame.
  void Upload(RoundUpdate update) override;
  void Report(RoundId next_round, uint64_t log_hash,
              const v1::WorkerTelemetry& telemetry) override {}
  void Leave(const std::string& reason) override;
  void Stop() override;
  bool stopped() const override { return stopped_; }
  TransferStats stats() const override { return meter_.stats(); }

 private:
  LocalAggregator* const aggregator_;
  const std::shared_ptr<EventQueue>
      queue_;  // not bounded: a round cannot close without this worker
  TransferMeter meter_;
  std::atomic<bool> stopped_ = false;
  std::string worker_;  // empty before Join and after Leave
};

}  // namespace distro::worker
