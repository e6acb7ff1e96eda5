// From tokens to what the units share. Pure. The two that make a Batch throw Torch's exceptions.
#pragma once

#include "absl/status/status.h"
#include "common/model_config/llama_config.h"
#include "worker/model/model.h"
#include "worker/model/unit.h"

namespace distro::worker {

// InvalidArgument: not a whole number of sequences, `labels` tokens more than 1 to max_positions
// positions, a token outside the vocabulary; names it.
absl::Status CheckBatch(const LlamaConfig& config, const TokenBatch& batch, int64_t labels);

// Of sequences of S + 1 tokens: position s predicts token s + 1. On `device`.
Batch LabelledBatch(const LlamaConfig& config, const TokenBatch& tokens, at::Device device);
// Of sequences of S tokens: the last unit returns logits.
Batch UnlabelledBatch(const LlamaConfig& config, const TokenBatch& tokens, at::Device device);

}  // namespace distro::worker
