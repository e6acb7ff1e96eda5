// Continues tokens with a trained model, one token at a time. Recomputes the whole context for
// every token. Stateless.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/layout/tensor_buffer.h"
#include "worker/model/model.h"

namespace distro::worker {

struct GenerateOptions {
  int count = 0;  // tokens to add
  // 0: always the likeliest token (ties: the lowest); larger values: more random tokens.
  double temperature = 0;
  uint64_t seed = 0;  // of the draws; unused at temperature 0
};

// Logits of the token that follows, f32 [vocab_size].
using NextLogits =
    absl::FunctionRef<absl::StatusOr<std::vector<float>>(absl::Span<const int32_t> tokens)>;

// The `count` tokens that follow `prompt`; the model sees the last `positions` tokens.
// InvalidArgument: an empty prompt, a negative count or temperature. Other errors: those of `next`.
absl::StatusOr<std::vector<int32_t>> Generate(NextLogits next, int positions,
                                              absl::Span<const int32_t> prompt,
                                              const GenerateOptions& options);
// The same of a model, which sees max_positions tokens. InvalidArgument also: a token outside the
// vocabulary.
absl::StatusOr<std::vector<int32_t>> Generate(const Model& model, const TensorBuffer& parameters,
                                              absl::Span<const int32_t> prompt,
                                              const GenerateOptions& options);

}  // namespace distro::worker
