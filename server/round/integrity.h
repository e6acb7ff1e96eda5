// Do replicas hold the same parameters, and do workers point where the others point? What a round
// showed becomes a verdict on its members (docs/protocol.md, "State hashes", "Agreement").
//
// Passive: under the manager's mutex. Audit() and CheckHashes() are pure and need no lock.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/round/agreement.h"
#include "common/round/round_method.h"
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
  Integrity(const RunIdentity* run, Log* log, RunObserver* observer)
      : run_(run),
        log_(log),
        observer_(observer),
        references_(run->layout.get(), run->initial_snapshot.state_hash()) {}

  // A record of an earlier process: an archiver may report on it. Its workers were judged then.
  void Learn(const v1::RoundHeader& header) { references_.Commit(header); }

  // What came with an upload into `round`.
  void AddUpload(RoundId round, const v1::UploadHeader& header) {
    references_.AddTensors(round, header.state_hash(), header.tensor_hashes());
  }

  // An archiver's replay: a witness. That it contradicts its round's reference is told, and moves
  // nobody: one side is wrong, and an operator finds out which. Requires CheckReport.
  void AddReport(const v1::ReportStateRequest& request);
  // InvalidArgument: not one hash a tensor, or, of round 0, not those of the run's own snapshot.
  absl::Status CheckReport(const v1::ReportStateRequest& request) const;

  // The segment of a round whose payloads are compared with the sum of the others: drawn so that a
  // worker cannot know which one before it has sent: the clock is in the draw.
  SegmentId DrawAudited(RoundId round, absl::Time now) const;
  using Counts = std::vector<std::pair<std::string, AgreementCounts>>;  // by worker
  void AddAudit(RoundId round, const Counts& counts);

  // The open round is committed: says of each member what it showed.
  void Judge(const v1::RoundHeader& header, const Round& round, Membership* members);

  // The last state hash that differed, for people: round, whose, tensors.
  const std::string& mismatch() const { return mismatch_; }
  // It agrees less with the others than they do among themselves: its update counts no more than
  // one local step's.
  bool Doubts(absl::string_view worker) const { return agreement_.Doubts(worker); }
  double AgreementScore(absl::string_view worker) const { return agreement_.Of(worker).Score(); }

 private:
  // Returns whose state hash differs.
  std::set<std::string> JudgeStates(const v1::RoundHeader& header, Membership* members);
  void JudgeAgreement(Membership* members);
  void TellContradiction(RoundId round);
  void NoteMismatch(const std::string& where);

  // Constant after construction.
  const RunIdentity* const run_;
  Log* const log_;
  RunObserver* const observer_;

  ReferenceState references_;
  Agreement agreement_;
  std::string mismatch_;
};

// Compares what each worker sent of an audited segment with what the others sent. DataLoss: a
// payload that was checked does not decode.
absl::StatusOr<Integrity::Counts> Audit(const RoundMethod& method, RoundId round,
                                        const ClosedSegment& closed, const SegmentResult& result);

// Of an upload. InvalidArgument: the tensors' hashes are neither none nor one each, or do not make
// the state hash.
absl::Status CheckHashes(const v1::UploadHeader& header, const Layout& layout);

}  // namespace distro::server
