// One worker's connection to a LocalAggregator: the calls of GrpcExchange as calls of RoundManager.
// Retries nothing, since nothing is lost on the way: what the aggregator refuses ends the worker.
// Thread-safety as in Exchange.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bench/local/local_aggregator.h"
#include "common/client/exchange/exchange.h"
#include "common/client/exchange/transfer_meter.h"
#include "common/feed/subscription.h"
#include "distro/v1/session.pb.h"

namespace distro::server {

class LocalExchange final : public Exchange {
 public:
  // `aggregator` is borrowed.
  explicit LocalExchange(LocalAggregator* aggregator);
  ~LocalExchange() override;

  // Statuses of these three as in docs/protocol.md.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override;
  absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) override;
  absl::StatusOr<RoundEvent> Next() override;
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot, const std::string& path) override;
  // NotFound: a local run has none.
  absl::Status DownloadCompanion(const v1::CompanionFile& file, const std::string& path) override;
  bool Ready() override;
  // These two: if it is refused, this worker's Next returns the status.
  void Upload(RoundUpdate update) override;
  void Report(RoundId next_round, uint64_t log_hash) override;
  void Leave(const std::string& reason) override;
  void Stop() override;
  bool stopped() const override { return stopped_; }
  TransferStats stats() const override { return meter_.stats(absl::ZeroDuration()); }

 private:
  class Bell;

  absl::Status Subscribe();
  // The next event, or a status that Next returns; nullopt: there is none yet.
  std::optional<absl::StatusOr<RoundEvent>> Poll();
  absl::StatusOr<RoundEvent> TakeFrames();
  absl::Status Send(const RoundUpdate& update);
  void End(absl::Status status);

  LocalAggregator* const aggregator_;
  RoundManager& rounds_;  // of it
  TransferMeter meter_;   // has its own locking
  const std::shared_ptr<Bell> bell_;
  std::atomic<bool> stopped_ = false;

  // Of the calling thread:
  v1::WorkerIdentity worker_;  // no name before Join and after Leave
  uint64_t epoch_ = 0;
  uint64_t heartbeats_ = 0;
  uint64_t log_hash_ = 0;  // of the record before the assembler's next round
  absl::Status end_;       // why the session ended
  std::optional<RoundAssembler> assembler_;
  std::unique_ptr<Subscription> subscription_;
  std::optional<absl::StatusOr<RoundEvent>> waiting_;  // of Ready, for Next
};

}  // namespace distro::server
