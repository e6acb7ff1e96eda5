// Do all replicas hold the same parameters? Workers report the state hash of theirs before each round, an archiver that of
// its replay; here is who is right and who is not (docs/protocol.md, "State hashes"). Pure; bounded: the last 64 rounds.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"

namespace distro::server {

inline constexpr size_t kReferenceRounds = 64;
// A majority is one of at least that many workers.
inline constexpr int kMinMajority = 3;

enum class ReferenceSource {
  kNone,      // nobody can say who is right
  kMajority,  // more than half of at least kMinMajority workers
  kGiven,     // the archiver's replay, or the snapshot of the run
};

// A worker whose state hash is not the reference; without a reference, one of those that differ.
struct Disagreement {
  std::string name;
  uint64_t state_hash = 0;
  // Names of the tensors that differ, the first few and how many more; empty: not known.
  std::string tensors = {};
};

struct StateVerdict {
  ReferenceSource source = ReferenceSource::kNone;
  uint64_t reference = 0;     // 0 without a source
  bool contradicted = false;  // given, and a majority of the workers agrees on another one
  std::vector<Disagreement> disagree = {};  // ascending by name; without a source all or none

  // Those who disagree may be quarantined in the end. Otherwise they resync, and nobody is quarantined.
  bool certain() const { return source != ReferenceSource::kNone && !contradicted; }
};

class ReferenceState {
 public:
  // `layout` is borrowed; names of tensors come from its manifest.
  explicit ReferenceState(const Layout* layout) : layout_(layout) {}

  // What a worker reported with its update of `round`; the last one of a name counts. Tensors' hashes that are not one a
  // tensor, or do not make the state hash, are not used. A round older than the last kReferenceRounds is ignored.
  void AddWorker(RoundId round, absl::string_view name, uint64_t state_hash,
                 absl::Span<const uint64_t> tensor_hashes);
  // The reference of `round`: that of an archiver, or of the snapshot. Tensors' hashes as above. Of the rounds that are older
  // than the last kReferenceRounds the one that was given last is remembered: an archiver may lag, and offer a snapshot.
  void SetReference(RoundId round, uint64_t state_hash, absl::Span<const uint64_t> tensor_hashes);

  // The verdict on what is known of the round now; a reference that comes later may change it. An unknown round: nothing.
  StateVerdict Judge(RoundId round) const;

 private:
  struct Round {
    std::map<std::string, uint64_t, std::less<>> workers = {};  // name -> state hash
    std::optional<uint64_t> given = std::nullopt;
    std::map<uint64_t, std::vector<uint64_t>> tensors = {};  // state hash -> tensors' hashes
  };

  // nullptr: too old.
  Round* Find(RoundId round);
  void Keep(Round* round, uint64_t state_hash, absl::Span<const uint64_t> tensor_hashes) const;
  static std::optional<uint64_t> Majority(const Round& round);
  std::string Differences(const Round& round, uint64_t state_hash, uint64_t reference) const;
  // Between all that differ.
  std::string Differences(const Round& round) const;
  std::string Names(const std::vector<size_t>& tensors) const;

  const Layout* const layout_;
  std::map<uint64_t, Round> rounds_;
  std::optional<std::pair<RoundId, uint64_t>> given_late_;  // of a round older than those
};

}  // namespace distro::server
