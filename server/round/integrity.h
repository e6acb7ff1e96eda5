// Checks that replicas hold the same parameters and that workers' updates agree with the others'.
// Each round gives a verdict on its members (docs/protocol.md, "State hashes", "Agreement").
//
// Passive: guarded by the mutex of SharedRun. Audit() and CheckHashes() are pure and need no lock.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/method/base/round_method.h"
#include "common/run/round/agreement.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "distro/v1/update.pb.h"
#include "server/log/run_identity.h"
#include "server/round/closing.h"
#include "server/round/reference_state.h"
#include "server/round/round.h"
#include "server/round/run_observer.h"
#include "server/session/membership.h"

namespace distro::server {

class Integrity {
 public:
  // All are borrowed.
  Integrity(const RunIdentity* run, Log* log, RunObserver* observer);

  // Adds a record of an earlier process, on which an archiver may report. Its workers have been
  // judged already.
  void Learn(const v1::RoundHeader& header) { references_.Commit(header); }

  // Adds the hashes of an upload into `round`.
  void AddUpload(RoundId round, const v1::UploadHeader& header) {
    references_.AddTensors(round, header.state_hash(), header.tensor_hashes());
  }

  // Adds the hashes of an archiver's replay. If they contradict the round's reference, that is
  // logged and counted, but no worker is affected: an operator must find out which side is wrong.
  // Requires CheckReport.
  void AddReport(const v1::ReportStateRequest& request);
  // InvalidArgument: not one hash per tensor, or, for round 0, not those of the run's snapshot.
  absl::Status CheckReport(const v1::ReportStateRequest& request) const;

  // Selects the segment of a round whose payloads are compared with each other. The
  // choice depends on the clock, so that a worker cannot know it before it has sent.
  SegmentId DrawAudited(RoundId round, absl::Time now) const;
  // Of a worker with another one whose update counts.
  struct Comparison {
    std::string worker;
    std::string other;
    AgreementCounts counts;
  };
  using Counts = std::vector<Comparison>;
  void AddAudit(RoundId round, const Counts& counts);

  // The open round is committed: applies its verdicts to the members.
  void Judge(const v1::RoundHeader& header, const Round& round, Membership* members);

  // A human-readable description of the last state hash that differed: round, owner, tensors.
  const std::string& mismatch() const { return mismatch_; }
  // Whether the worker agrees less with the others than they do with each other: its update then
  // counts at most as one local step. Never where workers may read other texts.
  bool Doubts(absl::string_view worker) const {
    return judges_agreement_ && agreement_.Doubts(worker);
  }
  double AgreementScore(absl::string_view worker) const { return agreement_.Of(worker).Score(); }

 private:
  // Returns the workers whose state hash differs.
  std::set<std::string> JudgeStates(const v1::RoundHeader& header, Membership* members);
  void JudgeAgreement(Membership* members);
  void LogContradiction(RoundId round);
  void NoteMismatch(const std::string& where);

  // Constant after construction.
  const RunIdentity* const run_;
  Log* const log_;
  RunObserver* const observer_;
  const bool judges_agreement_;  // else it is only exported

  ReferenceState references_;
  Agreement agreement_;
  std::string mismatch_;
};

// Compares each worker's payload of an audited segment with those of the others. DataLoss: a
// checked payload does not decode.
absl::StatusOr<Integrity::Counts> Audit(const RoundMethod& method, RoundId round,
                                        const ClosedSegment& closed);

// Checks the hashes of an upload. InvalidArgument: there are hashes but not one per tensor, or they
// do not combine to the state hash.
absl::Status CheckHashes(const v1::UploadHeader& header, const Layout& layout);

}  // namespace distro::server
