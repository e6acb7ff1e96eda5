// A synthetic worker: it joins, follows the rounds, and sends a synthetic update for every round
// that opens, with the protocol of docs/protocol.md and without a thread of its own (gRPC's
// callbacks). It counts the bytes it receives and compares them with the commit; with verification
// it assembles the rounds as a real worker does. It does not retry: the first error ends it.
//
// Uploads and subscription have a connection each, as a worker's; the workers of a process share
// the connection for control calls. Where the run has a mirror, results come from there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "bench/aggregator_load/round_times.h"
#include "bench/aggregator_load/synthetic_updates.h"
#include "common/feed/round_assembler.h"
#include "common/model/layout/layout.h"
#include "common/net/http/http_client.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "grpcpp/client_context.h"

namespace distro::bench {

using Stub = v1::AggregatorService::Stub;

// Shared by the workers of a process; borrowed, outlives them.
struct LoadRun {
  std::string aggregator;   // host:port
  Stub* control = nullptr;  // a connection
  int first = 0;            // number of the process's first worker in the run
  const Layout* layout = nullptr;
  const SyntheticUpdates* updates = nullptr;
  RoundTimes* times = nullptr;
};

// Joins worker `number` of the run.
absl::StatusOr<v1::JoinResponse> JoinRun(Stub* control, int number);

class LoadWorker {
 public:
  // Follows the rounds from now on. `joined` is the answer to JoinRun(number).
  LoadWorker(const LoadRun* run, int number, const v1::JoinResponse& joined, bool verify);
  // Requires that it has ended.
  ~LoadWorker();

  // Sends a heartbeat with the worker's round.
  void Heartbeat();
  // Starts to end the worker, if it has not ended.
  void Cancel();
  // Whether it has ended within `timeout`.
  bool AwaitEnd(absl::Duration timeout) const;
  // OK if it has received the whole run. Requires that it has ended.
  absl::Status status() const;

 private:
  class Subscription;
  class Upload;

  // The subscription's side, one frame at a time.
  absl::Status Take(v1::SubscribeRoundsResponse frame);
  static uint64_t FirstSample(const v1::RoundOpen& open, const std::string& worker);
  absl::Status TakeSegment(RoundId round, const v1::SegmentFrame& frame);
  // From the mirror. Blocking; DataLoss: it is not what was announced.
  absl::Status FetchObject(RoundId round, const v1::SegmentObject& object);
  absl::Status TakeCommit(RoundId round, const std::string& header);
  absl::Status CheckCommit(const v1::RoundHeader& header);
  void SubscriptionEnded(const absl::Status& status);

  // A round waits until the upload before it has ended.
  struct OpenRound {
    RoundId round;
    uint64_t first_sample = 0;  // with deltas, of this worker's slot
  };
  void Offer(OpenRound open);
  void UploadEnded(const absl::Status& status);
  void StartUpload(OpenRound open) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const LoadRun* const run_;
  const int number_;
  const v1::WorkerIdentity identity_;
  const uint64_t epoch_;
  const uint64_t initial_state_;
  const std::string run_id_;
  std::unique_ptr<Stub> uploads_;
  std::unique_ptr<Stub> downloads_;

  // Of the subscription's callbacks.
  std::optional<HttpClient> mirror_;
  std::vector<uint64_t> received_;           // [segments] bytes of the open round
  std::optional<RoundAssembler> assembler_;  // of one that verifies
  std::unique_ptr<Subscription> subscription_;

  mutable absl::Mutex mu_;
  uint64_t heartbeats_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_round_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t hash_ ABSL_GUARDED_BY(mu_) = 0;  // of the last commit
  Upload* upload_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::optional<OpenRound> waiting_ ABSL_GUARDED_BY(mu_);  // opened, not begun
  bool followed_ ABSL_GUARDED_BY(mu_) = false;             // the subscription has ended
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::bench
