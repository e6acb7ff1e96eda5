// Continues a text with a trained model, one token at a time. Recomputes the whole context for
// every token. Stateless.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/layout/tensor_buffer.h"
#include "worker/model/model.h"

namespace distro::worker {

struct GenerateOptions {
  int count = 0;  // tokens to add
  // 0: always the likeliest token (ties: the lowest); larger values: more random tokens.
  double temperature = 0;
  uint64_t seed = 0;  // of the draws; unused at temperature 0
};

// The `count` tokens that follow `prompt`; the model sees the last max_positions tokens.
// InvalidArgument: an empty prompt, a negative count or temperature, a token outside the
// vocabulary. Other errors: as Model.
absl::StatusOr<std::vector<int32_t>> Generate(const Model& model, const TensorBuffer& parameters,
                                              absl::Span<const int32_t> prompt,
                                              const GenerateOptions& options);

}  // namespace distro::worker
