// Makes the record of a round: the workers with samples, the included updates, and the result of
// each segment. The aggregator and tests make their records here, so that all are the same
// (docs/protocol.md, "A round"). Pure; plain data.
//
//   SlotPlan plan = PlanOf(start);                        // or of MakeStartHeader()
//   ...                                                   // the round continues
//   v1::RoundHeader header = MakeRoundHeader(outcome);
//   plan.Give(workers, config, plan.slots, &header);
//   plan.Advance(header);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/checksum.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"
#include "common/run/sample_pool.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The slots of the round that is open or opens next, and of the one after it. A record has the
// slots of the round after that.
struct SlotPlan {
  std::vector<v1::Slot> slots = {};
  std::vector<v1::Slot> next_slots = {};
  SamplePool pool = {};  // unassigned samples

  // Completes the header of the round whose members had `round_slots`, in their order. If updates
  // are bound to slots, unread samples of these slots are returned. Then `workers`, ascending and
  // distinct, get samples of the round after the next, unless that is past the run's end.
  void Give(absl::Span<const std::string> workers, const v1::RunConfig& config,
            absl::Span<const v1::Slot> round_slots, v1::RoundHeader* header) const;
  // Call when the round of `slots` is in the log, with its header.
  void Advance(const v1::RoundHeader& header);
};

SlotPlan PlanOf(const v1::StartHeader& start);

// The start of a run.
struct RunStart {
  std::string run_id = {};
  std::string data_fingerprint = {};
  uint64_t state_hash = 0;  // of the run's own snapshot
};

// The first link of the chain: samples of rounds 0 and 1 for `workers`, ascending and distinct.
v1::StartHeader MakeStartHeader(const RunStart& start, const Layout& layout,
                                const v1::RunConfig& config, absl::Span<const std::string> workers);

struct RecordedMember {
  v1::Member member = {};
  std::vector<bool> included = {};  // [segments]; none: in no segment
};

struct RecordedSegment {
  uint64_t payload_bytes = 0;
  uint64_t checksum = 0;
  Sha256Digest sha256 = {};
};

struct RoundOutcome {
  RoundId round = {};
  EpochId epoch = {};
  v1::StepParameters step = {};  // as announced by Open
  uint64_t predecessor_hash = 0;
  std::vector<RecordedMember> members = {};    // ascending by name
  std::vector<RecordedSegment> segments = {};  // [segments]
  std::vector<uint32_t> scale_medians = {};    // of deltas [tensors] (ScaleMedians)
};

// The record's header without samples, times and reason, which the caller sets.
v1::RoundHeader MakeRoundHeader(const RoundOutcome& outcome);

// The number of samples of its slot, from the first on, that the member's update used; 0 if it is
// included in no segment.
uint64_t ReadSamples(const v1::RoundHeader& header, int member, const v1::Slot& slot,
                     uint32_t samples_a_step);

// Tokens of the included updates; `slots` are those of the round.
uint64_t IncludedTokens(const v1::RoundHeader& header, absl::Span<const v1::Slot> slots,
                        const v1::RunConfig& config);

}  // namespace distro
