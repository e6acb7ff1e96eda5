// Forwards all calls to a LocalExchange; a test overrides one of them.
#pragma once

#include <string>
#include <utility>

#include "bench/local/local_exchange.h"

namespace distro::worker {

// Passes everything on.
class ForwardingExchange : public Exchange {
 public:
  explicit ForwardingExchange(server::LocalAggregator* aggregator) : inner_(aggregator) {}

  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override {
    return inner_.Join(request);
  }
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                const std::string& path) override {
    return inner_.DownloadSnapshot(snapshot, path);
  }
  absl::Status DownloadCompanion(const v1::CompanionFile& file, const std::string& path) override {
    return inner_.DownloadCompanion(file, path);
  }
  absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) override {
    return inner_.Follow(layout, next_round, log_hash);
  }
  absl::StatusOr<RoundEvent> Next() override { return inner_.Next(); }
  bool Ready() override { return inner_.Ready(); }
  void Upload(RoundUpdate update) override { inner_.Upload(std::move(update)); }
  void Report(RoundId next_round, uint64_t log_hash) override {
    inner_.Report(next_round, log_hash);
  }
  void Leave(const std::string& reason) override { inner_.Leave(reason); }
  void Stop() override { inner_.Stop(); }
  bool stopped() const override { return inner_.stopped(); }
  TransferStats stats() const override { return inner_.stats(); }

 protected:
  server::LocalExchange inner_;
};

}  // namespace distro::worker
