// Makes the record of a round: who has samples, whose updates are in it, and the result of each
// segment. The aggregator, the aggregator inside a process and tests make their records here, so
// that all are the same (docs/protocol.md, "A round"). Pure; plain data.
//
//   SlotPlan plan = PlanOf(start);                        // or of MakeStartHeader()
//   ...                                                   // the round goes on
//   v1::RoundHeader header = MakeRoundHeader(outcome);
//   plan.Give(workers, config, plan.slots, &header);
//   plan.Advance(header);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/run/sample_pool.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Who has samples of the round that is open or opens next, and of the one after it: a record has
// those of the round after that.
struct SlotPlan {
  std::vector<v1::Slot> slots = {};
  std::vector<v1::Slot> next_slots = {};
  SamplePool pool = {};  // what nobody has

  // Completes the header of the round whose members had `round_slots`, in their order: with deltas
  // what was not read of these comes back, and `workers`, ascending and distinct, get samples of
  // the round after the next; none where that is past the run's end.
  void Give(absl::Span<const std::string> workers, const v1::RunConfig& config,
            absl::Span<const v1::Slot> round_slots, v1::RoundHeader* header) const;
  // The round of `slots` is in the log, with this header.
  void Advance(const v1::RoundHeader& header);
};

SlotPlan PlanOf(const v1::StartHeader& start);

// What a run starts from.
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

// The record's header but for samples, times and reason, which are its owner's.
v1::RoundHeader MakeRoundHeader(const RoundOutcome& outcome);

// How many samples of its slot the member's update is of: the first ones. 0: it is included in no
// segment.
uint64_t ReadSamples(const v1::RoundHeader& header, int member, const v1::Slot& slot,
                     uint32_t samples_a_step);

// Tokens of the updates that are included; `slots` are those of the round.
uint64_t IncludedTokens(const v1::RoundHeader& header, absl::Span<const v1::Slot> slots,
                        const v1::RunConfig& config);

}  // namespace distro
