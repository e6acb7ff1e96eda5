// Combines the updates of a block that are not dense: makes its levels from what the workers sent,
// the same as RoundBlock of the means of DeltaAccumulator (combine.h), in a fraction of the time.
//
// The scales of a block are small multiples of a power of two. So the sum of a position and the
// weight of who sent it share a word, which adding touches once. Means are floats; those so near to
// the bound of a level that their rounding may matter are computed in integers. Where that is not
// so, as with a scale far below the others, the means of DeltaAccumulator are computed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/matrix.h"

namespace distro {

// Holds 210 KB of scratch memory. Not thread-safe.
class SparseAccumulator {
 public:
  // Requires 0 <= rule.least_senders <= rule.weights.
  explicit SparseAccumulator(const MeanRule& rule);

  // Makes the block. Returns how many means are not 0, also those too small for a level. The order
  // of the workers does not matter; positions outside the tensor are ignored. Requires distinct
  // positions of a worker, and weights of 1 or more that sum to at most rule.weights and
  // kMaxDeltaWeights.
  uint32_t Combine(const BlockExtent& extent, absl::Span<const SparseSent> sent, DeltaBlock* block);
  // The block's means, until the next call. Requires the same.
  const DeltaMeans& MeansOf(const BlockExtent& extent, absl::Span<const SparseSent> sent);

 private:
  // A word is S * 2^weight_bits + C: the signed sum in units of 2^unit_bits, and the weight of who
  // sent the position.
  struct Form {
    int unit_bits = 0;
    int weight_bits = 0;
  };
  // nullopt if sums, weights or unit are not within the limits of words.
  std::optional<Form> FormOf(absl::Span<const SparseSent> sent) const;
  // Adds to words_. Returns whether positions are marked.
  bool Add(const BlockExtent& extent, absl::Span<const SparseSent> sent, const Form& form);
  // Moves the words that are not 0, and their positions, to taken_ and positions_.
  void TakeAll();
  void TakeMarked();
  // Sets means_[i] to |S| / D of taken_[i]; returns the largest.
  float MakeMeans(const Form& form);
  // The code that covers a mean.
  int CodeOf(const Form& form, float largest) const;
  // |r| of taken_[i].
  int64_t MeanOf(const Form& form, uint32_t i) const;
  // Sets levels_ from means_: kUndecided and more where MakeBlock must compute the level.
  void MakeLevels(const Form& form, int code);
  uint32_t MakeBlock(const Form& form, int code, DeltaBlock* block) const;

  static constexpr int32_t kUndecided = 1 << 16;

  const int64_t weights_;
  const int64_t least_divisor_;  // D is C or this, whichever is more
  const MeanRounding rounding_;
  std::array<int32_t, kBlockElements> words_{};        // by position; 0 if nobody sent it
  std::array<uint64_t, kBlockElements / 64> marks_{};  // of positions, if few are sent
  uint32_t count_ = 0;                                 // of the arrays below
  alignas(16) std::array<int32_t, kBlockElements> taken_;
  std::array<uint16_t, kBlockElements> positions_;
  alignas(16) std::array<float, kBlockElements> means_;
  alignas(16) std::array<int32_t, kBlockElements> levels_;
  DeltaAccumulator sums_;
  DeltaMeans means_of_block_;
};

}  // namespace distro
