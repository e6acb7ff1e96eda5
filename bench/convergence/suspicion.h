// How soon a run would notice a worker that works against the others: the rule of
// docs/protocol.md, "Agreement", on the messages of the lab. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "bench/convergence/delta_messages.h"

namespace distro::worker {

class Suspicion {
 public:
  explicit Suspicion(int workers) : windows_(workers) {}

  // `messages` [workers]: nullptr of a worker that is not included. Compares each one's signs with
  // those of the sum of the others'.
  void Add(absl::Span<const DeltaMessage* const> messages);

  bool Suspects(int worker) const;

 private:
  struct Counts {
    int64_t agree = 0;
    int64_t disagree = 0;
  };
  void AddBlock(absl::Span<const DeltaMessage* const> messages, int64_t block,
                absl::Span<int64_t> sums, std::vector<Counts>* counts) const;

  std::vector<std::deque<Counts>> windows_;
};

}  // namespace distro::worker
