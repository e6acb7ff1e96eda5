// The open round: whose payloads are in, which segments are closed. A payload of a (worker,
// segment) never changes once it was taken: the same bytes are taken again, others are refused.
// Holds the payloads until their segment closes.
//
// Not thread-safe: its owner (Course) is under the manager's mutex.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/round/record.h"
#include "common/round/round_method.h"
#include "common/round/weighing.h"
#include "common/round_log/committed_round.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/update.pb.h"
#include "server/round/round_policy.h"
#include "server/session/membership.h"

namespace distro::server {

// A worker's payload of a segment.
struct Contribution {
  std::string worker;
  int weight = 0;
  SharedBytes payload;
};

// How far a worker's update may count.
struct Standing {
  bool probation = false;  // it is checked and not used
  bool doubted = false;    // 1, as of one local step: it agrees less with the others than they do
};

// What became of a payload.
enum class Taken {
  kNew,    // it is in the round
  kAgain,  // these bytes were in already
  kLate,   // its segment had closed without it
};

class Round {
 public:
  // Segment `audited` is the one whose payloads Audited() gives.
  Round(RoundId id, uint32_t segments, std::vector<v1::Slot> slots, absl::Duration opened_at,
        SegmentId audited = SegmentId(0), v1::StepParameters step = {}, Weighing weighing = {});

  RoundId id() const { return id_; }
  absl::Duration opened_at() const { return opened_at_; }
  const std::vector<v1::Slot>& slots() const { return slots_; }
  // Updates count 1, whatever they say and whoever sends them.
  bool counts_all_alike() const { return weighing_.all_alike(); }
  // What Open and the record say about the step.
  const v1::StepParameters& step() const { return step_; }
  bool HasSlot(absl::string_view worker) const { return IndexOf(worker) >= 0; }

  // The ACTIVE workers with samples: whom the round waits for; and how much of who has not begun
  // counts by its data. Called at Open (and when samples were added).
  void SetExpected(const Membership& membership);
  // Gives samples to workers that had none. Requires names without a slot.
  void AddSlots(const std::vector<v1::Slot>& slots);
  // Nobody waits for this worker any more.
  void Forgo(absl::string_view worker);
  // Its votes count from now on, also those that it sent on probation, in segments that are not
  // closed: the round needs them, because too few other workers are left.
  void Promote(absl::string_view worker);
  // As Forgo, and what it sent leaves the segments that are not closed.
  void Expel(absl::string_view worker);
  int expected() const;

  // An upload began. With the first bytes of a worker its weight in this round is fixed, but for
  // Promote: by its local steps or its data, 0 on probation. FailedPrecondition: no samples for
  // this worker. InvalidArgument: local steps that its slot has no samples for; with deltas,
  // samples of another slot. AlreadyExists: it said before that it abstains, or abstains after it
  // sent.
  absl::Status BeginUpload(const v1::UploadHeader& header, Standing standing);
  // Segments of that worker that need not be sent: taken, or closed. Ascending.
  std::vector<uint32_t> Held(absl::string_view worker) const;
  // Takes a valid payload. Requires BeginUpload and segment < segments. AlreadyExists: other bytes
  // were taken before, or the worker abstained.
  absl::StatusOr<Taken> Put(const v1::WorkerIdentity& worker, SegmentId segment,
                            SharedBytes payload, absl::Duration now);
  // Every segment of the worker's update was taken in time.
  bool Complete(absl::string_view worker) const;
  // Nothing more of the worker's update can be taken: each segment has it or is closed.
  bool Finished(absl::string_view worker) const;
  // Its votes count in this round: from its first bytes on.
  bool Counts(absl::string_view worker) const;

  // What Decide() looks at. Workers' sessions, and the weight of who has not sent yet, come from
  // `membership`.
  RoundSnapshot Snapshot(const Membership& membership) const;

  // What the audited segment has, ascending by the workers' names. Before it is closed.
  std::vector<Contribution> Audited() const;
  SegmentId audited() const { return audited_; }
  // Closes the segment: its payloads that count, ascending by the workers' names. The round lets go
  // of them.
  std::vector<SentPayload> Close(SegmentId segment);
  // Of what Close() gave.
  void SetResult(SegmentId segment, const SegmentResult& result);
  // When the segment's last payload came.
  absl::Duration last_in(SegmentId segment) const { return segments_[segment.value()].last_in; }
  // Names of expected workers without a payload of the segment, who did not abstain.
  std::vector<std::string> Missing(SegmentId segment) const;

  // Members and segments of the record; members' states are those of now. Requires all segments
  // closed and their results set.
  RoundOutcome Outcome(const Membership& membership) const;
  // Mean of the finite losses that came with the updates; not set without one.
  std::optional<double> MeanLoss() const;
  // Workers with at least one payload in that counts.
  int contributors() const;

 private:
  struct Piece {
    bool in = false;
    bool included = false;  // it was when the segment closed
    uint64_t checksum = 0;
    uint64_t size = 0;
    SharedBytes payload = {};  // null once the segment is closed
  };
  struct Contributor {
    bool expected = false;
    bool added = false;  // it has its samples since the round opened
    bool began = false;
    bool abstained = false;
    uint64_t incarnation = 0;  // whose bytes came first; 0: none
    int weight = 0;            // once its upload began
    int full_weight = 1;       // what it would be but for probation
    int data_weight = 1;       // by its worker's data, where that counts
    uint32_t local_steps = 0;  // with a window
    uint64_t state_hash = 0;
    double loss = 0;
    std::vector<Piece> pieces = {};  // [segments]
    LargestCodes codes = {};         // of what is included, with deltas
    bool any_in() const { return incarnation != 0; }
  };
  struct Segment {
    bool closed = false;
    RecordedSegment result = {};
    absl::Duration last_in;
  };

  void Insert(const v1::Slot& slot, bool added);
  void WeighByData(const Membership& membership);
  int IndexOf(absl::string_view worker) const;
  // Of its votes: fixed, or what they would be if it sent now.
  static int WeightOf(const Contributor& contributor, const Worker* worker);
  absl::Status Conflict(absl::string_view worker, absl::string_view what) const;

  const RoundId id_;
  const absl::Duration opened_at_;
  const SegmentId audited_;
  const v1::StepParameters step_;
  const Weighing weighing_;
  std::vector<v1::Slot> slots_;            // [workers], ascending by name
  std::vector<Contributor> contributors_;  // [workers]
  std::vector<Segment> segments_;          // [segments]
};

}  // namespace distro::server
