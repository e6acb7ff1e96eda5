// Compares the signs of the updates of a segment with each other, for the agreement of workers
// (common/run/round/agreement.h). Pure; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/layout/matrix.h"

namespace distro {

// Counts the positions that two workers sent.
struct AgreementCounts {
  uint64_t agree = 0;     // with one sign
  uint64_t disagree = 0;  // with opposite signs

  uint64_t common() const { return agree + disagree; }
  // (agree - disagree) / sqrt(agree + disagree): about -1 to 1 for random signs. 0 without votes.
  double Score() const;
  // (agree - disagree) / (agree + disagree), -1 to 1. 0 without votes.
  double Share() const;
  bool operator==(const AgreementCounts&) const = default;
};

// What a worker sent in a block; borrowed.
struct SentSigns {
  absl::Span<const uint16_t> positions;  // ascending
  absl::Span<const int8_t> signs;        // +1 or -1 each; 0: none
};

// The counts of each pair of the workers that sent updates of a segment. It needs memory of W^2
// counts and time of the sum, over positions, of the squares of their senders.
class PairCounts {
 public:
  explicit PairCounts(size_t workers) : workers_(workers), counts_(workers * workers) {}

  // Adds one block. Positions outside the tensor do not count. Requires one entry per worker, and
  // positions below kBlockElements.
  void AddBlock(const BlockExtent& extent, absl::Span<const SentSigns> sent);
  // The same for workers that sent every position: bit i % 8 of byte i / 8 is 1 if position i is
  // negative. Requires one entry per worker: kBlockElements / 8 bytes, or none if it sent nothing.
  void AddBlock(const BlockExtent& extent, absl::Span<const absl::string_view> signs);

  size_t workers() const { return workers_; }
  // The same for (b, a). Requires two different workers.
  const AgreementCounts& Of(size_t a, size_t b) const {
    return counts_[a < b ? a * workers_ + b : b * workers_ + a];
  }

 private:
  struct Entry {
    uint32_t worker;
    int8_t sign;
    int32_t next;  // entry of the same position, -1: none
  };

  size_t workers_;
  std::vector<AgreementCounts> counts_;  // [a * workers + b], a < b
  std::array<int32_t, kBlockElements> first_ = [] {
    std::array<int32_t, kBlockElements> none;
    none.fill(-1);
    return none;
  }();
  std::vector<Entry> entries_;  // of the block
};

}  // namespace distro
