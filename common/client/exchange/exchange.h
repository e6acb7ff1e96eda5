// The interface between training and the network. Two implementations: GrpcExchange talks to an
// aggregator, LocalExchange connects the workers of one process. Training code does not depend on
// which one it uses.
//
// One training thread calls Join .. Leave; Stop may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/client/exchange/transfer_stats.h"
#include "common/feed/round_assembler.h"
#include "common/model/layout/layout.h"
#include "distro/v1/session.pb.h"

namespace distro {

// One round's upload. Payloads are immutable and kept by the exchange until the round is committed.
struct RoundUpdate {
  RoundId round;
  uint64_t state_hash = 0;  // of the parameters before the round
  double loss = 0;
  uint32_t local_steps = 0;           // steps of the update, if the run has a window
  uint64_t first_sample = 0;          // of the slot that was read, if updates are bound to slots
  bool abstain = false;               // then there are no payloads
  std::vector<SharedBytes> payloads;  // [segments]
  std::vector<uint64_t> tensor_hashes =
      {};  // the tensors' hashes behind state_hash, in manifest order; may be empty
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Joins the run. While the aggregator is unreachable, retries with backoff and logs the reason,
  // until Stop. Call it again after Next returned `diverged` or `pruned`: this starts a new session
  // and forgets earlier updates. The response's epoch is never lower than the request's, or than
  // this exchange has seen in the run. Other errors are the aggregator's refusal with its reason
  // (docs/protocol.md, "Statuses"); retrying does not help.
  virtual absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) = 0;

  // Downloads the snapshot that Join named to the file `path`; resumes, and checks its SHA-256. If
  // rounds are already running it joins again afterwards and reports the measured bandwidth.
  // ResourceExhausted with reason `too_slow`: the link is too slow to catch up. FailedPrecondition
  // with reason `pruned`: the snapshot was deleted; call Join for another.
  virtual absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                        const std::string& path) = 0;

  // Fetches a companion that Join named (docs/checkpoints.md) into the file `path`, resuming and
  // checking its SHA-256. Statuses as DownloadSnapshot, except `too_slow`.
  virtual absl::Status DownloadCompanion(const v1::CompanionFile& file,
                                         const std::string& path) = 0;

  // Subscribes to the run from `next_round`, whose predecessor has the chain hash `log_hash`.
  // `layout` is borrowed until Leave. The worker is still joining: Report makes it take part.
  virtual absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) = 0;

  // The next opened or committed round, in order; blocks. Each committed round arrives once; an
  // open round may be announced again (new epoch). Reconnects by itself. Cancelled: Stop was
  // called. OutOfRange: the run is done. With reason `diverged` or `pruned`: the aggregator's log
  // does not continue this replica; call Join and start from a snapshot. Other reasons (`replaced`,
  // `quarantined`, ...) are final.
  virtual absl::StatusOr<RoundEvent> Next() = 0;

  // Whether Next would return at once. The caller applies all waiting results before it adds a
  // gradient that was finished late.
  virtual bool Ready() = 0;

  // Sends an update in the background; does not block. Sends it again after a reconnect, until its
  // round is committed.
  virtual void Upload(RoundUpdate update) = 0;

  // Sets the state of the parameters that heartbeats report. From the first report at the head of
  // the log on, the worker is given samples, and rounds wait for it.
  virtual void Report(RoundId next_round, uint64_t log_hash) = 0;

  // Ends the session and all background work.
  virtual void Leave(const std::string& reason) = 0;

  // Makes blocked and later calls return Cancelled, except Leave. Safe from a signal-handling
  // thread; idempotent.
  virtual void Stop() = 0;
  // Whether Stop was called: long work is dropped rather than finished.
  virtual bool stopped() const = 0;

  // Thread-safe; includes transfers in progress.
  virtual TransferStats stats() const = 0;
};

}  // namespace distro
