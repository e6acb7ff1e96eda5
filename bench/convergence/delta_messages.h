// The messages of the lab's workers with the deltas method, in a form that also serves variants
// that the real system does not have: a value in units of 2^-44 for every position, blocks as
// elements or as DCT, other levels. Without such a variant, messages use the arithmetic of the real
// system (common/method/deltas, kernels/cpu). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "bench/convergence/deltas_settings.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/round/agreement.h"
#include "worker/rules/deltas/inner_optimizer.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// The blocks of a model, and which tensors are sent as DCT.
struct BlockForms {
  const Layout* layout = nullptr;  // borrowed
  std::vector<bool> as_dct = {};   // [tensors]
};
BlockForms FormsOf(const DeltasSettings& settings, const Layout& layout,
                   absl::Span<const InnerTensor> tensors);

// Of all blocks of the model; entries as in DeltaUpdate.
struct DeltaMessage {
  int k = 0;
  std::vector<uint16_t> positions;  // [B, K] ascending within a block
  std::vector<int64_t> values;      // [B, K] units of 2^-44; all 0 in an empty block
};

DeltaMessage MessageOf(const DeltaUpdate& update);

// The message of a worker with the error buffer `a`, according to settings.values.
DeltaMessage EncodeVariant(const DeltasSettings& settings, const BlockForms& forms,
                           const RunSpans& a);

// Root of the sum of squares, in units.
double MessageNorm(const DeltaMessage& message);
void ScaleBy(double factor, DeltaMessage* message);

// Of the messages, each of weight 1. Of a block's frequencies none is outside the tensor.
DeltaMeans CombineMessages(absl::Span<const DeltaMessage* const> messages, const BlockForms& forms,
                           const MeanRule& rule);

// How the messages compare with each other.
PairCounts CompareMessages(absl::Span<const DeltaMessage* const> messages, const BlockForms& forms);

// Means as workers receive them: rounded to `levels` levels that are 2^step apart, with the level
// of each (the lowest is dropped). One level: the mean magnitude of the block.
struct RoundedMeans {
  DeltaMeans means;
  std::vector<uint8_t> levels;  // [E]
  std::vector<uint8_t> codes;   // [B]
};
RoundedMeans RoundMeans(const DeltaMeans& means, int levels, double step);
// The same of a result of the real system.
RoundedMeans MeansOf(const DeltaResult& result);

// Every position that a message has.
DeltaMeans AllSent(absl::Span<const DeltaMessage* const> messages, int64_t blocks);
// The positions of `of` that are not in `without`.
DeltaMeans Without(const DeltaMeans& of, const DeltaMeans& without);

// e <- e - what `message` has at the positions of `returned`.
void SubtractMessage(const DeltaMessage& message, const DeltaMeans& returned,
                     const BlockForms& forms, const RunSpans& e);
// out <- means, dense, in parameters' units.
void SpreadMeans(const DeltaMeans& means, const BlockForms& forms, TensorBuffer* out);

}  // namespace distro::worker
