// Compares the signs of each worker's update with those of every other worker, and finds workers
// that oppose the others beyond chance (docs/protocol.md, "Agreement"). Pure; not thread-safe.
//
// A worker's agreement is the median of its agreements with the others: as long as fewer than half
// of the workers are hostile, neither accomplices that confirm each other nor opponents of one
// honest worker move it (docs/decisions/0036).
//
// Agreement near zero is normal: workers read different samples, and late in a run gradients are
// mostly noise. With deltas all workers then oppose each other slightly (docs/decisions/0021). Only
// a worker that opposes the others more than they do each other is suspicious: flipped signs, a
// poisoned update, broken arithmetic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/method/base/pair_counts.h"

namespace distro {

// Two workers with fewer votes at the same positions are not compared.
inline constexpr uint64_t kMinCommonVotes = 100;
// All counts are halved after so many rounds.
inline constexpr uint64_t kAgreementHalfLife = 64;
// With only two workers that disagree, either may be wrong.
inline constexpr int kMinJudgedWorkers = 3;

// Whether, with n = agree + disagree votes of at least kMinCommonVotes, disagree - agree exceeds n
// * -typical by more than 6 * sqrt(n) and by more than a tenth of n. `typical`, -1 to 0: the share
// of an honest worker if that is negative. The first limit alone is not enough: honest workers
// reach it, because their signs depend on each other (docs/decisions/0008).
bool Suspicious(const AgreementCounts& counts, double typical);
// The same with half of both limits: more than 3 * sqrt(n) and more than a twentieth of n.
bool Doubtful(const AgreementCounts& counts, double typical);

// The agreement of the workers of a run in the last rounds.
class Agreement {
 public:
  // Adds a comparison of `worker` with `other` in that round; it does not count for `other`. Rounds
  // do not descend. One segment per round is enough.
  void Add(RoundId round, absl::string_view worker, absl::string_view other,
           const AgreementCounts& counts);

  // The counts of the median of the worker's comparisons that have kMinCommonVotes votes, ordered
  // by share; the upper of two. All zero if there is none.
  AgreementCounts Of(absl::string_view worker) const;

  // Returns the suspicious worker with the lowest score (the first name among equals), if at least
  // kMinJudgedWorkers workers are judged: those compared with two others or more. Typical is the
  // lower median of their shares.
  std::optional<std::string> Worst() const;
  // Whether the worker is Doubtful; false while there are too few workers to judge.
  bool Doubts(absl::string_view worker) const;
  // Forgets everything about a worker; the others keep what they have among each other.
  void Remove(absl::string_view worker);

 private:
  using Others = std::map<std::string, AgreementCounts, std::less<>>;
  void HalveUntil(uint64_t round);
  // By name; empty if too few are judged.
  std::map<std::string, AgreementCounts> Judged() const;

  std::map<std::string, Others, std::less<>> workers_;
  uint64_t halvings_ = 0;  // since round 0
};

}  // namespace distro
