// The Llama of a Hugging Face config.json: its sizes, its tensors, what a step costs. Pure
// functions, no weights.
//
// Keys that change the arithmetic and are not built are refused by name; keys that LlamaForCausalLM
// itself ignores (token ids, pretraining_tp, use_cache, versions) are ignored here too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/layout/manifest.h"

namespace distro {

struct LlamaConfig {
  int hidden_size = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;  // heads is a multiple; query head h reads KV head h / (heads / kv_heads)
  int head_dim = 0;  // even; heads * head_dim need not be hidden_size
  int intermediate_size = 0;
  int vocab_size = 0;
  int max_positions = 0;
  float rms_norm_eps = 0;
  double rope_theta = 0;
  bool tied_embeddings = false;
  float initializer_range = 0;  // standard deviation of initial weights

  bool operator==(const LlamaConfig&) const = default;
};

// From the keys of transformers 5 (dtype, rope_parameters) and of older ones (torch_dtype,
// rope_theta, rope_scaling). Absent or null keys have transformers' defaults; hidden_size,
// num_hidden_layers, num_attention_heads, intermediate_size, vocab_size and model_type must be
// there. The dtype is not read: the weights name their own. InvalidArgument names the key and the
// remedy: a value of the wrong type or out of range, head counts that do not divide, an odd
// head_dim, another architecture, or a feature that is not built (scaled or partial RoPE, biases,
// dropout, sliding window, quantization, a hidden_act other than silu).
absl::StatusOr<LlamaConfig> ParseLlamaConfig(absl::string_view json);

// A config.json that transformers opens (4 and 5; dtype float32) and ParseLlamaConfig reads back as
// the same value. Requires a config that ParseLlamaConfig accepts.
std::string WriteLlamaConfig(const LlamaConfig& config);

// The trainable tensors, f32, named and shaped [out, in] as in LlamaForCausalLM, in the order of
// the data flow; lm_head.weight only when the embeddings are not tied.
std::vector<TensorSpec> LlamaTensors(const LlamaConfig& config);

// Elements of all of LlamaTensors().
int64_t ParameterCount(const LlamaConfig& config);

// Floating-point operations of forward and backward for one token in a sequence of
// `sequence_length`:
//   6 * (elements of the matrices that multiply) + 12 * layers * heads * head_dim * sequence_length
// Matrices: all projections and the head (tied or not), neither the embedding's lookup nor the
// norms. The second term is the scores and their product with the values, without taking off the
// masked half (as PaLM, appendix B, counts).
double FlopsPerToken(const LlamaConfig& config, int sequence_length);

}  // namespace distro
