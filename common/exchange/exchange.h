// The interface between training and the network: a worker's part in a run. Two implementations:
// GrpcExchange talks to an aggregator, LocalExchange joins the workers of one process. Training
// code cannot tell them apart.
//
// One training thread calls Join .. Leave; Stop may come from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/exchange/transfer_stats.h"
#include "common/layout/layout.h"
#include "common/round_log/round_assembler.h"
#include "distro/v1/session.pb.h"

namespace distro {

// One round's upload. Payloads are immutable and kept by the exchange until the round is committed.
struct RoundUpdate {
  RoundId round;
  uint64_t state_hash = 0;  // of the parameters before the round
  double loss = 0;
  uint32_t local_steps = 0;           // where the run has a window: those of the update
  uint64_t first_sample = 0;          // with deltas: of the slot whose samples were read
  bool abstain = false;               // then there are no payloads
  std::vector<SharedBytes> payloads;  // [segments]
  std::vector<uint64_t> tensor_hashes =
      {};  // what state_hash is made of, in manifest order; or empty
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Takes part in the run. Retries with backoff while the aggregator is away (and logs why) until
  // Stop. Again after Next returned `diverged` or `pruned`: begins another session; what was handed
  // in before is forgotten. The answer is not of a lower epoch than the request names, or than this
  // exchange has seen of that run. Otherwise the aggregator's refusal with its reason
  // (docs/protocol.md, "Statuses"); retrying does not help.
  virtual absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) = 0;

  // Fetches the snapshot that Join named into the file `path`, resuming and checking its SHA-256.
  // When the run is under way it joins again afterwards, with what the link has shown:
  // ResourceExhausted with reason `too_slow` says that it could never catch up. FailedPrecondition
  // with reason `pruned`: the snapshot is there no more, Join names another.
  virtual absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                        const std::string& path) = 0;

  // Fetches a companion that Join named (docs/checkpoints.md) into the file `path`, resuming and
  // checking its SHA-256. Statuses as DownloadSnapshot, but `too_slow`.
  virtual absl::Status DownloadCompanion(const v1::CompanionFile& file,
                                         const std::string& path) = 0;

  // Begins to follow the run from `next_round`, whose predecessor has chain hash `log_hash`.
  // `layout` is borrowed until Leave.
  virtual absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) = 0;

  // The next opened or committed round, in order; blocks. Committed rounds arrive once each, in
  // order; an open round may be announced again (new epoch). Reconnects by itself. Cancelled: Stop
  // was called. OutOfRange: the run is done. Otherwise by reason: `diverged` or `pruned`: the log
  // that is there does not continue this replica, Join and a snapshot do; `replaced`, `quarantined`
  // and others: the end.
  virtual absl::StatusOr<RoundEvent> Next() = 0;

  // Whether Next would return at once. A gradient that was finished late is added after all results
  // that are there.
  virtual bool Ready() = 0;

  // Sends an update in the background; does not block. It is offered again after a reconnect until
  // its round is committed.
  virtual void Upload(RoundUpdate update) = 0;

  // What heartbeats report of the parameters.
  virtual void Report(RoundId next_round, uint64_t log_hash) = 0;

  // Ends the session and all background work.
  virtual void Leave(const std::string& reason) = 0;

  // Makes blocked and later calls return Cancelled, except Leave. Safe from a signal-handling
  // thread; idempotent.
  virtual void Stop() = 0;
  // Whether Stop was called: long work is dropped rather than finished.
  virtual bool stopped() const = 0;

  // From any thread, with what is under way.
  virtual TransferStats stats() const = 0;
};

}  // namespace distro
