// The aggregator's interface to the rounds of a run (docs/algorithm.md): makes the step parameters
// of a round, checks updates, and combines the updates of a segment. worker/rules/update_rule.h
// is the worker's interface.
//
//   v1::StepParameters step = method.Step(round, medians, nullptr);    // into Open and the record
//   DISTRO_RETURN_IF_ERROR(method.CheckUpdate(payload, place, step));  // of each that arrives
//   result = method.Combine(place, payloads, threads, clock);
//
// Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/shared_bytes.h"
#include "common/method/base/largest_codes.h"
#include "common/method/base/pair_counts.h"
#include "distro/v1/round.pb.h"

namespace distro {

// A segment of a round.
struct RoundPlace {
  RoundId round;
  SegmentId segment;
};

// A worker's payload of a segment, and its weight.
struct SentPayload {
  SharedBytes bytes;
  int weight = 1;  // 1 or more
};

struct SegmentResult {
  SharedBytes payload;
  uint64_t checksum = 0;        // XXH3-64 of the payload, as the record lists it
  Sha256Digest sha256 = {};     // of the payload, as the record lists it
  uint64_t sent_positions = 0;  // positions that the payloads could send: workers * blocks * K
  uint64_t entries = 0;         // positions that are not zero, before download = top
  std::optional<uint64_t> agreement = {};  // signs: sum of |V|, before download = top
  absl::Duration combine_time;
  absl::Duration encode_time;
  std::vector<LargestCodes> largest_codes = {};  // deltas: [payloads]
};

class RoundMethod {
 public:
  virtual ~RoundMethod() = default;

  // The step parameters of Open and of the round's record. `medians`: scale_medians of the previous
  // record; none for round 0. `extension`: the newest of the run, or null.
  virtual v1::StepParameters Step(RoundId round, absl::Span<const uint32_t> medians,
                                  const v1::Extension* extension) const = 0;

  // The scale_medians of a record. `workers`: the largest codes of each that is included; `before`:
  // of the previous record, or empty.
  virtual std::vector<uint32_t> ScaleMedians(absl::Span<const LargestCodes> workers,
                                             absl::Span<const uint32_t> before) const = 0;

  // OK: `payload` is the output of an encoder, and the round allows it; `step` is the round's.
  // InvalidArgument names the difference.
  virtual absl::Status CheckUpdate(absl::string_view payload, RoundPlace place,
                                   const v1::StepParameters& step) const = 0;
  // The largest possible update of the segment, in bytes.
  virtual uint64_t MaxUpdateBytes(SegmentId segment) const = 0;
  // The bytes of a whole update, or a bound of them, for a link.
  virtual uint64_t UpdateBytes() const = 0;

  // Combines payloads that have passed CheckUpdate; their order does not matter. No payload at all
  // gives a result without entries. `threads` share the blocks; the result does not depend on their
  // number. DataLoss: a checked payload does not decode (memory is damaged). Requires threads >= 1.
  virtual absl::StatusOr<SegmentResult> Combine(RoundPlace place,
                                                absl::Span<const SentPayload> payloads, int threads,
                                                const Clock& clock) const = 0;

  // Compares the workers' updates of a segment with each other, in the order of `payloads`, which
  // have passed CheckUpdate. DataLoss: as Combine.
  virtual absl::StatusOr<PairCounts> Compare(
      RoundPlace place, absl::Span<const absl::string_view> payloads) const = 0;
};

}  // namespace distro
