// An archiver's calls to its aggregator. Control, subscription and snapshots each have a connection of their own, so that
// a snapshot never delays a round. Thread-safe. Blocking; `stopper` ends every call as Cancelled.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/client/backoff.h"
#include "common/client/connection.h"
#include "distro/v1/admin.grpc.pb.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "tools/archiver/stopper.h"

namespace distro::tools {

class AggregatorClient {
 public:
  // `stopper`, `log` and `clock` are borrowed. The statuses of OpenChannel.
  static absl::StatusOr<std::unique_ptr<AggregatorClient>> Open(const ChannelOptions& channel,
                                                                const BackoffOptions& backoff,
                                                                Stopper* stopper, Log* log,
                                                                const Clock* clock);

  // One attempt, 10 s at most.
  absl::StatusOr<v1::GetRunResponse> GetRun();
  // Until there is an answer with a run, a snapshot, and an epoch of at least `epoch`; a lower one is an aggregator that was
  // replaced. Otherwise the answer that does not change, or Cancelled.
  absl::StatusOr<v1::GetRunResponse> AwaitRun(uint64_t epoch);

  // Into `path`, by way of `path`.part, also over several calls and processes. Tries again while the aggregator is away.
  // InvalidArgument: the bytes are not those of the SHA-256. FailedPrecondition, "pruned": it was dropped meanwhile.
  absl::Status FetchSnapshot(const v1::SnapshotInfo& snapshot, const std::string& path);
  // Until it is stored or refused; goes on where an attempt ended. One of a round that is not
  // committed yet ("no_reference") waits.
  absl::Status SendSnapshot(const v1::UploadSnapshotHeader& header, absl::string_view bytes);
  // Until it is taken or refused.
  absl::Status ReportState(const v1::ReportStateRequest& request);

  Connection* rounds() { return rounds_.get(); }
  const BackoffOptions& backoff() const { return backoff_; }

 private:
  AggregatorClient(const BackoffOptions& backoff, Stopper* stopper, Log* log, const Clock* clock)
      : backoff_(backoff), stopper_(stopper), log_(log), clock_(clock) {}
  absl::Status SendOnce(const v1::UploadSnapshotHeader& header, absl::string_view bytes,
                        uint64_t* sent);

  // Constant after construction.
  const BackoffOptions backoff_;
  Stopper* const stopper_;
  Log* const log_;
  const Clock* const clock_;
  std::unique_ptr<Connection> control_, rounds_, bulk_;
};

// A seed that differs from process to process.
uint64_t RandomSeed();

}  // namespace distro::tools
