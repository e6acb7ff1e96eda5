// What a round's record says: who has samples, who was in, what came of each segment. Whoever runs
// rounds makes it here, so that the aggregator, the one inside a process and tests have the same
// records (docs/protocol.md, "A round"). Pure; plain data.
//
//   SlotPlan plan = PlanOf(start);                        // or of MakeStartHeader()
//   ...                                                   // the round goes on
//   v1::RoundHeader header = MakeRoundHeader(config, outcome);
//   plan.Give(workers, config, &header);
//   plan.Advance(header);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Who has samples of the round that is open or opens next, and of the one after it: a record has
// those of the round after that.
struct SlotPlan {
  std::vector<v1::Slot> slots = {};
  std::vector<v1::Slot> next_slots = {};
  uint64_t next_sample = 0;  // the first that nobody has

  // Gives `workers`, ascending and distinct, samples of the round after the next, in its header.
  void Give(absl::Span<const std::string> workers, const v1::RunConfig& config,
            v1::RoundHeader* header);
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

// Tokens of the updates that are included; `slots` are those of the round.
uint64_t IncludedTokens(const v1::RoundHeader& header, absl::Span<const v1::Slot> slots,
                        uint32_t sequence_length);

}  // namespace distro
