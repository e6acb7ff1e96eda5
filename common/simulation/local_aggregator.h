// The aggregator of a run whose workers are threads of one process. It produces the same samples,
// steps, votes and chain of records as a gRPC run in which every worker is included, without
// network, log or deadline. For simulation, and for the test that both give the same parameters.
//
// The first round opens when start_workers have joined; no other name may join later. A round
// closes when every worker that has samples in it and has not left has uploaded or abstained; the
// last of them combines. Thread-safe; outlives its LocalExchanges.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/client/exchange/exchange.h"
#include "common/feed/event_queue.h"
#include "common/method/base/round_method.h"
#include "common/model/layout/layout.h"
#include "common/run/round/record.h"
#include "common/run/round/weighing.h"
#include "common/simulation/local_members.h"
#include "distro/v1/run.pb.h"
#include "distro/v1/session.pb.h"

namespace distro {

struct LocalRun {
  v1::RunConfig config;  // complete; start_workers is the number of workers
  std::string model_config_json;
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<const RoundMethod> method;
  v1::SnapshotInfo snapshot;  // of round 0
  std::string snapshot_path;
  // Keeps every result in memory, so that a worker can rejoin, as a new process or to replay the
  // log.
  bool keeps_log = false;
};

class LocalAggregator {
 public:
  explicit LocalAggregator(LocalRun run);

  // The functions for LocalExchange. Statuses as in Exchange.
  const LocalRun& run() const { return run_; }
  // `queue` receives the worker's events. FailedPrecondition: the run has started, the data differ,
  // or it is another run. AlreadyExists: the name is taken. With keeps_log a name may join again:
  // its old queue receives nothing more, the new one every round from the first.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request,
                                        std::shared_ptr<EventQueue> queue);
  // Sending the same bytes again is OK. If an earlier process with the same name has uploaded, its
  // bytes count and these are ignored. FailedPrecondition: the round is not open, or the worker has
  // no samples in it. AlreadyExists: the worker has sent something else. InvalidArgument: a payload
  // is missing or not valid.
  absl::Status Upload(const std::string& worker, RoundUpdate update);
  // Does nothing if a later process with the same name has joined.
  void Leave(const v1::WorkerIdentity& worker);

 private:
  struct Answer {
    uint64_t incarnation = 0;
    RoundUpdate update;
  };

  absl::Status CheckJoin(const v1::JoinRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status JoinAgain(const v1::JoinRequest& request, std::shared_ptr<EventQueue> queue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::JoinResponse MakeResponse() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  OpenedRound Opened() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Done() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckPayloads(const RoundUpdate& update) ABSL_LOCKS_EXCLUDED(mu_);
  void Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OpenRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WeighByData() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int WeightOf(const std::string& worker, const RoundUpdate& update) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CommitWhenComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<CommittedRound> Commit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The workers with samples in the open round, and their payloads of a segment, in the same order.
  std::vector<RecordedMember> Members() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<SentPayload> Payloads(SegmentId segment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const LocalRun run_;
  const Weighing weighing_;

  absl::Mutex mu_;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  std::string data_fingerprint_ ABSL_GUARDED_BY(mu_);
  LocalMembers members_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Answer> answers_ ABSL_GUARDED_BY(mu_);    // of the open round
  std::map<std::string, int> data_weights_ ABSL_GUARDED_BY(mu_);  // of who has samples in it
  std::vector<CommittedRound> log_ ABSL_GUARDED_BY(mu_);          // with keeps_log
  RoundId round_ ABSL_GUARDED_BY(mu_);
  uint64_t log_hash_ ABSL_GUARDED_BY(mu_) = 0;          // of the last record
  SlotPlan plan_ ABSL_GUARDED_BY(mu_);                  // of round_ and the round after it
  std::vector<uint32_t> medians_ ABSL_GUARDED_BY(mu_);  // of the record before round_
  v1::StepParameters step_ ABSL_GUARDED_BY(mu_);        // of round_
};

}  // namespace distro
