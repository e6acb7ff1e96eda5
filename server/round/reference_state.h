// Do all replicas hold the same parameters? Members of a round report the state hash of theirs
// before it, and its record says which one is right (common/round_log/log_reference.h); here is who
// differs, and in which tensors. An archiver is a witness: what it reports is compared, and moves
// nobody (docs/protocol.md, "State hashes"). Pure; bounded: the last 64 rounds. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/round_log/log_reference.h"
#include "distro/v1/round.pb.h"

namespace distro::server {

inline constexpr size_t kReferenceRounds = 64;

// A worker whose state hash is not the reference; without a reference, one of those that differ.
struct Disagreement {
  std::string name;
  uint64_t state_hash = 0;
  // Names of the tensors that differ, the first few and how many more; empty: not known.
  std::string tensors = {};
};

struct StateVerdict {
  std::optional<LogReference> reference = std::nullopt;
  std::vector<Disagreement> disagree = {};  // ascending by name; without a reference all or none

  // Those who disagree may be quarantined in the end. Otherwise they resync, and nobody is
  // quarantined.
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

  // The tensors' hashes that came with an upload. Those that are not one a tensor, or do not make
  // the state hash, are not used. Here as below: a round older than the last kReferenceRounds is
  // ignored.
  void AddTensors(RoundId round, uint64_t state_hash, absl::Span<const uint64_t> tensor_hashes);
  // What an archiver's replay found before `round`; the last report of a round counts. Requires one
  // hash a tensor.
  void AddWitness(RoundId round, absl::Span<const uint64_t> tensor_hashes);

  // The verdict on the members of a round that is committed; witnesses are compared with its
  // reference from now on.
  StateVerdict Commit(const v1::RoundHeader& header);
  // Of the archivers' last report of `round`; told once a round. Nothing before the round is
  // committed, or without a reference.
  std::optional<Contradiction> TakeContradiction(RoundId round);

 private:
  using TensorHashes = std::vector<uint64_t>;
  struct Round {
    std::optional<LogReference> reference = std::nullopt;
    std::map<uint64_t, TensorHashes> tensors = {};  // by state hash
    std::optional<TensorHashes> witness = std::nullopt;
    bool told = false;
  };

  // nullptr: too old.
  Round* Find(RoundId round);
  // Empty: those of a state are not known.
  std::string Differences(const Round& round, const TensorHashes* theirs, uint64_t reference) const;
  // Between all that differ.
  std::string Differences(const Round& round) const;
  std::string Names(const std::vector<size_t>& tensors) const;

  const Layout* const layout_;
  const uint64_t initial_state_hash_;
  std::map<uint64_t, Round> rounds_;
};

}  // namespace distro::server
