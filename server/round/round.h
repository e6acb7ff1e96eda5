// The open round: which payloads have arrived, which segments are closed. The payload of a (worker,
// segment) never changes once accepted: sending the same bytes again is OK, other bytes are
// refused. Holds the payloads until their segment closes.
//
//   round.SetExpected(membership);
//   DISTRO_RETURN_IF_ERROR(round.BeginUpload(header, restrictions));
//   round.Put(worker, segment, payload, now);      // for every segment
//   payloads = round.Close(segment);               // when Decide() says so
//   round.SetResult(segment, Combine(payloads));
//
// Not thread-safe: its owner (RunPosition) is guarded by the mutex of SharedRun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/checksum.h"
#include "common/base/ids.h"
#include "common/method/base/round_method.h"
#include "common/run/record/committed_round.h"
#include "common/run/round/record.h"
#include "common/run/round/weighing.h"
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

// Restrictions on a worker's update.
struct Restrictions {
  bool probation = false;  // checked but not used
  bool doubted = false;    // counts as one local step (Integrity::Doubts)
};

// A received payload with its Xxh3, by which a repetition is recognised. Made before the mutex is
// taken, because hashing a payload takes time.
struct ReceivedPayload {
  explicit ReceivedPayload(SharedBytes payload) : bytes(std::move(payload)), xxh3(Xxh3(*bytes)) {}
  SharedBytes bytes;
  uint64_t xxh3;
};

// The result of Put().
enum class PutResult {
  kNew,    // added to the round
  kAgain,  // the same bytes were added before
  kLate,   // the segment has closed without it
};

class Round {
 public:
  // Audited() returns the payloads of segment `audited`.
  Round(RoundId id, uint32_t segments, std::vector<v1::Slot> slots, absl::Duration opened_at,
        SegmentId audited = SegmentId(0), v1::StepParameters step = {}, Weighing weighing = {});

  RoundId id() const { return id_; }
  absl::Duration opened_at() const { return opened_at_; }
  const std::vector<v1::Slot>& slots() const { return slots_; }
  // Whether every update counts 1.
  bool counts_all_alike() const { return weighing_.all_alike(); }
  // The step parameters of Open and of the record.
  const v1::StepParameters& step() const { return step_; }
  bool HasSlot(absl::string_view worker) const { return IndexOf(worker) >= 0; }

  // Sets the expected workers (ACTIVE, with samples), and the weights by data of workers that have
  // not started to send. Called at Open, and when samples were added.
  void SetExpected(const Membership& membership);
  // Assigns samples to workers without a slot.
  void AddSlots(const std::vector<v1::Slot>& slots);
  // Stops waiting for this worker.
  void StopWaitingFor(absl::string_view worker);
  // Ends the worker's probation in this round: its updates count in all segments that are not
  // closed, including those already sent. Used when too few other workers are left.
  void EndProbation(absl::string_view worker);
  // As StopWaitingFor; also removes its payloads from the segments that are not closed.
  void RemovePayloads(absl::string_view worker);
  int expected() const;

  // An upload starts. The worker's first upload fixes its weight in this round (except for
  // EndProbation): by its local steps or its data, or 0 on probation. FailedPrecondition: the
  // worker has no samples. InvalidArgument: more local steps than its slot has samples for, or
  // samples of another slot. AlreadyExists: it has abstained before, or abstains after sending.
  absl::Status BeginUpload(const v1::UploadHeader& header, Restrictions restrictions);
  // Segments that the worker need not send, because they were accepted or are closed. Ascending.
  std::vector<uint32_t> Held(absl::string_view worker) const;
  // What Put() would return: a payload that is not new need not be decoded.
  absl::StatusOr<PutResult> PreviewPut(absl::string_view worker, SegmentId segment,
                                       const ReceivedPayload& payload) const;
  // Adds a valid payload. Requires BeginUpload and segment < segments. AlreadyExists: other bytes
  // were accepted before, or the worker abstained.
  absl::StatusOr<PutResult> Put(const v1::WorkerIdentity& worker, SegmentId segment,
                                ReceivedPayload payload, absl::Duration now);
  // Whether every segment of the worker's update arrived in time.
  bool Complete(absl::string_view worker) const;
  // Whether nothing more of the worker's update can be accepted: each segment has it or is closed.
  bool Finished(absl::string_view worker) const;
  // Whether the worker's updates count in this round; known from its first upload on.
  bool Counts(absl::string_view worker) const;

  // The input of Decide(). Workers' sessions, and the weights of workers that have not sent yet,
  // come from `membership`.
  RoundFacts Facts(const Membership& membership) const;

  // The payloads of the audited segment, ascending by worker name. Call before it is closed.
  std::vector<Contribution> Audited() const;
  SegmentId audited() const { return audited_; }
  // Closes the segment, and removes and returns its payloads that count, ascending by worker name.
  std::vector<SentPayload> Close(SegmentId segment);
  // Sets the result of combining the payloads returned by Close().
  void SetResult(SegmentId segment, const SegmentResult& result);
  // When the segment's last payload arrived.
  absl::Duration last_in(SegmentId segment) const { return segments_[segment.value()].last_in; }
  // Names of expected workers that have neither a payload of the segment nor abstained.
  std::vector<std::string> Missing(SegmentId segment) const;

  // Members and segments for the record, with the members' current states. `method` is the run's;
  // `medians`: scale_medians of the previous record, or empty. Requires that all segments are
  // closed and their results set.
  RoundOutcome Outcome(const Membership& membership, const RoundMethod& method,
                       absl::Span<const uint32_t> medians) const;
  // Mean of the finite losses reported with the updates; nullopt without any.
  std::optional<double> MeanLoss() const;
  // Number of workers with at least one payload that counts.
  int contributors() const;

 private:
  struct Piece {
    bool in = false;
    bool included = false;  // counted when the segment closed
    uint64_t xxh3 = 0;
    uint64_t size = 0;
    SharedBytes payload = {};  // null once the segment is closed
  };
  struct Contributor {
    bool expected = false;
    bool added = false;  // got its samples after the round opened
    bool began = false;
    bool abstained = false;
    uint64_t incarnation = 0;  // of the process that sent first; 0: none
    int weight = 0;            // set when its upload starts
    int full_weight = 1;       // the weight without probation
    int data_weight = 1;       // by its worker's data, if that counts
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
  // The weight of its votes: as fixed, or as it would be if it sent now.
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
