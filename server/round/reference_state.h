// Checks that all replicas hold the same parameters. Members of a round report their state hash
// before it, and the round's record defines which is right
// (common/run/record/log_reference.h). This class finds who differs, and in which tensors. Reports
// of archivers are compared too, but do not affect workers (docs/protocol.md, "State hashes").
// Pure; keeps the last 64 rounds. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"
#include "common/run/record/log_reference.h"
#include "distro/v1/round.pb.h"

namespace distro::server {

inline constexpr size_t kReferenceRounds = 64;

// A worker whose state hash is not the reference or, without a reference, differs from others.
struct Disagreement {
  std::string name;
  uint64_t state_hash = 0;
  // The first few names of tensors that differ, and how many more; empty if unknown.
  std::string tensors = {};
};

struct StateVerdict {
  std::optional<LogReference> reference = std::nullopt;
  std::vector<Disagreement> disagree = {};  // ascending by name; without a reference all or none

  // Whether workers that disagree repeatedly may be quarantined. Otherwise they only resync.
  bool certain() const { return reference && reference->majority; }
};

// An archiver's report that is not the reference.
struct Contradiction {
  uint64_t state_hash = 0;
  uint64_t reference = 0;
  std::string tensors = {};  // as above
};

class ReferenceState {
 public:
  // `layout` is borrowed; names of tensors come from its manifest. `initial_state_hash`: of the
  // run's own snapshot, the reference of round 0.
  ReferenceState(const Layout* layout, uint64_t initial_state_hash)
      : layout_(layout), initial_state_hash_(initial_state_hash) {}

  // Adds the tensors' hashes of an upload. Ignores them unless there is one per tensor and they
  // combine to the state hash. Here and below, rounds older than the last kReferenceRounds are
  // ignored.
  void AddTensors(RoundId round, uint64_t state_hash, absl::Span<const uint64_t> tensor_hashes);
  // Adds the hashes of an archiver's replay before `round`; the last report of a round counts.
  // Requires one hash per tensor.
  void AddReplay(RoundId round, absl::Span<const uint64_t> tensor_hashes);

  // Returns the verdict on the members of a committed round, and sets its reference for archivers'
  // reports.
  StateVerdict Commit(const v1::RoundHeader& header);
  // The contradiction in the archivers' last report of `round`, returned once per round. nullopt
  // before the round is committed, or without a reference.
  std::optional<Contradiction> TakeContradiction(RoundId round);

 private:
  using TensorHashes = std::vector<uint64_t>;
  struct RoundHashes {
    std::optional<LogReference> reference = std::nullopt;
    std::map<uint64_t, TensorHashes> tensors = {};  // by state hash
    std::optional<TensorHashes> replay = std::nullopt;
    bool told = false;
  };

  // nullptr: too old.
  RoundHashes* Find(RoundId round);
  // Empty if the hashes of a state are unknown.
  std::string Differences(const RoundHashes& round, const TensorHashes* theirs,
                          uint64_t reference) const;
  // Between all that differ.
  std::string Differences(const RoundHashes& round) const;
  std::string Names(const std::vector<size_t>& tensors) const;

  const Layout* const layout_;
  const uint64_t initial_state_hash_;
  std::map<uint64_t, RoundHashes> rounds_;
};

}  // namespace distro::server
