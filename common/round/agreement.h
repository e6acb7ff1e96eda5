// Compares the direction of a worker's update with those of the others: counts how often its signs
// equal those of the sum of the others' updates, and finds workers that oppose the others beyond
// chance (docs/protocol.md, "Agreement"). Pure; not thread-safe.
//
// Agreement near zero is normal: workers read different samples, and late in a run gradients are
// mostly noise. With deltas all workers then oppose each other slightly (docs/decisions/0021). Only
// a worker that opposes the others more than they do each other is suspicious: flipped signs, a
// poisoned update, broken arithmetic.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/layout/matrix.h"
#include "common/update/combine_deltas.h"
#include "common/update/votes.h"

namespace distro {

inline constexpr uint64_t kMinCommonVotes = 1000;
// Rounds whose counts are summed.
inline constexpr uint64_t kAgreementRounds = 128;
// With only two workers that disagree, either may be wrong.
inline constexpr int kMinJudgedWorkers = 3;

// Counts the signs of one worker at positions where the sum of the others' updates is not zero.
struct AgreementCounts {
  uint64_t agree = 0;     // the sign of the others' sum
  uint64_t disagree = 0;  // the other sign

  uint64_t common() const { return agree + disagree; }
  // (agree - disagree) / sqrt(agree + disagree): about -1 to 1 for random signs. 0 without votes.
  double Score() const;
  // (agree - disagree) / (agree + disagree), -1 to 1. 0 without votes.
  double Share() const;
  bool operator==(const AgreementCounts&) const = default;
};

// Whether, with n = agree + disagree votes of at least kMinCommonVotes, disagree - agree exceeds n
// * -typical by more than 6 * sqrt(n) and by more than a tenth of n. `typical`, -1 to 0: the share
// of an honest worker if that is negative. The first limit alone is not enough: honest workers
// reach it, because their signs depend on each other (docs/decisions/0008).
bool Suspicious(const AgreementCounts& counts, double typical);
// The same with half of both limits: more than 3 * sqrt(n) and more than a twentieth of n.
bool Doubtful(const AgreementCounts& counts, double typical);

// Returns the counts of one payload. `votes` is the sum of all payloads of that segment before
// download = top removes entries; it includes this payload times `weight` (0 on probation).
// InvalidArgument: the payload does not decode.
absl::StatusOr<AgreementCounts> CompareWithOthers(absl::string_view payload,
                                                  const PayloadExpectation& expected, int weight,
                                                  const Votes& votes);

// Deltas: one block of a worker's update.
struct SentBlock {
  absl::Span<const uint16_t> positions;  // as in DeltaUpdate
  absl::Span<const int64_t> values;  // with their signs, at most kMaxScale in magnitude; 0: none
  int weight = 1;                    // n_w
};
// Adds to the counts [sent] of included workers. Positions outside the tensor do not count.
// Requires weights that sum to at most kMaxDeltaWeights.
void CompareSent(const BlockExtent& extent, absl::Span<const SentBlock> sent,
                 absl::Span<AgreementCounts> counts);
// Returns the counts of the updates included in a segment, in their order. Requirements as
// CombineDeltas.
std::vector<AgreementCounts> CompareDeltas(absl::Span<const WeightedDelta> updates,
                                           absl::Span<const BlockExtent> extents);

// The counts of the workers over the last kAgreementRounds rounds. One segment per round is enough.
class Agreement {
 public:
  // Adds to the worker's counts of that round. Rounds do not descend.
  void Add(RoundId round, absl::string_view name, const AgreementCounts& counts);
  // All zero for an unknown name.
  AgreementCounts Of(absl::string_view name) const;

  // Returns the suspicious worker with the lowest score (the first name among equals), if at least
  // kMinJudgedWorkers workers have kMinCommonVotes votes; typical is the lower median of their
  // shares. Only one at a time: its votes are part of the sums for the others, so call Clear() when
  // it is removed from the run.
  std::optional<std::string> Worst() const;
  // Whether the worker is Doubtful; false while there are too few workers to judge.
  bool Doubts(absl::string_view name) const;
  void Clear() { workers_.clear(); }

 private:
  struct Window {
    std::deque<std::pair<uint64_t, AgreementCounts>> rounds = {};  // ascending
    AgreementCounts sum = {};
  };
  void DropBefore(uint64_t round);
  // The lower median of the shares, at most 0; not set while fewer than kMinJudgedWorkers have
  // votes.
  std::optional<double> Typical() const;

  std::map<std::string, Window, std::less<>> workers_;
  uint64_t newest_ = 0;
};

}  // namespace distro
