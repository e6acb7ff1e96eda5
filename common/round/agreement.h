// Does a worker's update point where those of the others point? Counts how often its signs are
// those of the sum of what the others sent, and says who opposes them beyond chance
// (docs/protocol.md, "Agreement"). Pure; not thread-safe.
//
// Agreement near zero is natural: workers read different samples, and late in a run gradients are
// mostly noise; under deltas all oppose each other a little then (docs/decisions/0021). Only a
// worker that opposes the others more than they do each other is suspicious: flipped signs, a
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
// Of two workers that disagree either may be the one that is wrong.
inline constexpr int kMinJudgedWorkers = 3;

// Of the signs that one worker sent where what the others sent does not sum to zero.
struct AgreementCounts {
  uint64_t agree = 0;     // the sign of the others' sum
  uint64_t disagree = 0;  // the other sign

  uint64_t common() const { return agree + disagree; }
  // (agree - disagree) / sqrt(agree + disagree): about -1 to 1 for signs that are drawn by chance.
  // 0 without votes.
  double Score() const;
  // (agree - disagree) / (agree + disagree), -1 to 1. 0 without votes.
  double Share() const;
  bool operator==(const AgreementCounts&) const = default;
};

// Of n = agree + disagree votes, at least kMinCommonVotes: disagree - agree is more than n *
// -typical, by more than 6 * sqrt(n) and more than a tenth of n. `typical`, -1 to 0: the share of
// an honest worker, where that is negative. The deviations alone are reached by honest workers,
// whose signs depend on each other (docs/decisions/0008).
bool Suspicious(const AgreementCounts& counts, double typical);
// The same of half of both margins: more than 3 * sqrt(n) and more than a twentieth of n.
bool Doubtful(const AgreementCounts& counts, double typical);

// The counts of one payload. `votes` is the sum of all payloads of that segment before it is cut
// down (download = top), with `weight` (0 on probation) times this one in it. InvalidArgument: the
// payload does not decode.
absl::StatusOr<AgreementCounts> CompareWithOthers(absl::string_view payload,
                                                  const PayloadExpectation& expected, int weight,
                                                  const Votes& votes);

// Deltas: what a worker sent of one block.
struct SentBlock {
  absl::Span<const uint16_t> positions;  // as in DeltaUpdate
  absl::Span<const int64_t> values;  // with their signs, at most kMaxScale in magnitude; 0: none
  int weight = 1;                    // n_w
};
// Adds to the counts [sent] of those who are included. Positions outside the tensor do not count.
// Requires weights that sum to at most kMaxDeltaWeights.
void CompareSent(const BlockExtent& extent, absl::Span<const SentBlock> sent,
                 absl::Span<AgreementCounts> counts);
// The counts of the updates that are included in a segment, in their order. Requires what
// CombineDeltas does.
std::vector<AgreementCounts> CompareDeltas(absl::Span<const WeightedDelta> updates,
                                           absl::Span<const BlockExtent> extents);

// The counts of the workers over the last kAgreementRounds rounds. One segment a round is enough to
// feed it.
class Agreement {
 public:
  // Adds to the worker's counts of that round. Rounds do not descend.
  void Add(RoundId round, absl::string_view name, const AgreementCounts& counts);
  // All zero for a name that is not known.
  AgreementCounts Of(absl::string_view name) const;

  // The suspicious worker of the lowest score (the first name among equals), if there are at least
  // kMinJudgedWorkers with kMinCommonVotes votes; typical is the lower median of their shares. One
  // at a time: its votes are in what the others were compared with, so Clear() follows when it is
  // taken out of the run.
  std::optional<std::string> Worst() const;
  // Half of what makes a worker suspicious, where workers are judged at all.
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
