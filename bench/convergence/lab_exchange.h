// An Exchange for experiments: delayed results, updates that miss their round, and variants of the
// algorithm that the real system does not have, to measure the effect of each rule. Everything else
// is passed to the underlying exchange.
//
// A missed update becomes an abstention: the round closes without it and the record says so, as
// when it is late over a network. Variants change the results that this worker receives, equally
// for every worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/exchange/exchange.h"
#include "common/model/layout/layout.h"

namespace distro::worker {

struct LabLink {
  // A result arrives this long after the upload began.
  absl::Duration delay = absl::ZeroDuration();
  // Probability that an update misses its round; independent from round to round.
  double miss = 0;
  // Updates of earlier rounds are all missed: a worker that begins to count late.
  uint64_t first_round = 0;
  uint64_t seed = 0;  // of what is missed, and of random signs

  // A hostile worker: it sends "inverted" or "random" signs at the positions of its update; its
  // feedback is that of an honest worker. Empty: honest.
  std::string attack = {};

  // Applies error feedback also to updates that were not included, as DeMo does.
  bool feedback_of_missed = false;
  // Replaces every sum of votes by its sign.
  bool one_vote = false;

  // Off: the worker is told to evaluate one sample, before and after the run. Replicas are the same
  // bits, so one of W evaluates for all.
  bool evaluates = true;

  // File that receives the votes of `record_round` (bench/wire/plain_votes.h), and folder that
  // receives this worker's own votes as a file of its name; empty: none.
  std::string record_votes = {};
  std::string record_updates = {};
  uint64_t record_round = 0;
};

// Thread-safety as in Exchange.
class LabExchange final : public Exchange {
 public:
  // `exchange` is borrowed.
  LabExchange(Exchange* exchange, const LabLink& link) : exchange_(exchange), link_(link) {}

  // Payload bytes of this worker so far, without what was missed; results as the variant has them.
  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t received_bytes() const { return received_bytes_; }

  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override;
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot, const std::string& path) override;
  absl::Status DownloadCompanion(const v1::CompanionFile& file, const std::string& path) override {
    return exchange_->DownloadCompanion(file, path);
  }
  absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) override;
  absl::StatusOr<RoundEvent> Next() override;
  bool Ready() override;
  void Upload(RoundUpdate update) override;
  void Report(RoundId next_round, uint64_t log_hash) override;
  void Leave(const std::string& reason) override { exchange_->Leave(reason); }
  void Stop() override { exchange_->Stop(); }
  bool stopped() const override { return exchange_->stopped(); }
  TransferStats stats() const override { return exchange_->stats(); }

 private:
  bool Misses(RoundId round) const;
  void Attack(RoundUpdate* update) const;
  absl::Status Vary(CommittedRound* round) const;
  absl::Status RecordVotes(const CommittedRound& round) const;
  absl::Status RecordUpdate(RoundId round) const;

  Exchange* const exchange_;
  const LabLink link_;
  // Of the training thread:
  std::string worker_;
  uint64_t incarnation_ = 0;
  int kept_ = 0;                        // of a block
  std::vector<SharedBytes> to_record_;  // what was uploaded for the round that is recorded
  const Layout* layout_ = nullptr;
  absl::Time arrival_ = absl::InfinitePast();  // of the next result
  uint64_t sent_bytes_ = 0;
  uint64_t received_bytes_ = 0;
};

}  // namespace distro::worker
