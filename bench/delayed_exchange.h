// An Exchange over an artificially slow link: a round's result arrives a fixed time after this worker's upload began,
// however fast the exchange behind it is. For benchmarks only. Thread-safety as in Exchange.
#pragma once

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "worker/exchange/exchange.h"

namespace distro::worker {

class DelayedExchange final : public Exchange {
 public:
  // `exchange` is borrowed.
  DelayedExchange(Exchange* exchange, absl::Duration delay) : exchange_(exchange), delay_(delay) {}

  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override {
    return exchange_->Join(request);
  }
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                const std::string& path) override {
    return exchange_->DownloadSnapshot(snapshot, path);
  }
  absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) override {
    return exchange_->Follow(layout, next_round, log_hash);
  }
  absl::StatusOr<RoundEvent> Next() override {
    absl::SleepFor(arrival_ - absl::Now());
    return exchange_->Next();
  }
  bool Ready() override { return absl::Now() >= arrival_ && exchange_->Ready(); }
  void Upload(RoundUpdate update) override {
    arrival_ = absl::Now() + delay_;
    exchange_->Upload(std::move(update));
  }
  void Report(RoundId next_round, uint64_t log_hash) override {
    exchange_->Report(next_round, log_hash);
  }
  void Leave(const std::string& reason) override { exchange_->Leave(reason); }
  void Stop() override { exchange_->Stop(); }
  bool stopped() const override { return exchange_->stopped(); }
  TransferStats stats() const override { return exchange_->stats(); }

 private:
  Exchange* const exchange_;
  const absl::Duration delay_;
  absl::Time arrival_ = absl::InfinitePast();  // of the next result; of the calling thread
};

}  // namespace distro::worker
