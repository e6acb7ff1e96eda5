// The decoder of a Hugging Face config.json: embedding, config.layers blocks, head. One class for
// all architectures of kinds.h, whose rows are its switches. worker/model/decoder does its
// arithmetic.
//
// Refuses, by name, keys that change the arithmetic in unsupported ways. Ignores keys that do not
// (token ids, pretraining_tp, use_cache, versions).
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/architecture.h"
#include "common/model/decoder/kinds.h"
#include "common/model/decoder/rope.h"

namespace distro {

class ConfigReader;

inline constexpr int kMaxLayers = 1024;
using LayerSet = std::bitset<kMaxLayers>;

struct DecoderConfig {
  int hidden_size = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;  // heads is a multiple; query head h reads KV head h / (heads / kv_heads)
  int head_dim = 0;  // even; heads * head_dim need not be hidden_size
  int intermediate_size = 0;
  int vocab_size = 0;
  int max_positions = 0;
  float rms_norm_eps = 0;
  Rope rope;
  bool tied_embeddings = false;
  float initializer_range = 0;  // standard deviation of initial weights
  const DecoderKind* kind = &kLlama;
  LayerSet without_rope = {};  // these layers do not rotate queries and keys
  LayerSet windowed = {};      // these attend to `window` positions, the own one among them
  int window = 0;              // 0: no layer has one

  bool operator==(const DecoderConfig&) const = default;
};

class Decoder final : public Architecture {
 public:
  // Requires a config that ReadDecoder can return.
  explicit Decoder(const DecoderConfig& config);

  const DecoderConfig& config() const { return config_; }

  std::string ConfigJson() const override;
  // Matrices are [out, in]; lm_head.weight only when the embeddings are not tied. Biases and norms
  // have one dimension.
  std::vector<TensorSpec> Tensors() const override;
  std::vector<UnitSpec> Units() const override;
  // Norms are 1, biases 0; matrices have the deviation initializer_range.
  InitialValues Initial(const TensorSpec& tensor) const override;

  //   6 * (elements of the matrices that multiply) + 12 * layers * heads * head_dim * S
  // Matrices: all projections and the head (tied or not), neither the embedding's lookup nor norms
  // and biases. The second term is the scores and their product with the values, without taking
  // off the masked half (as PaLM, appendix B, counts). A layer with a window counts at most that
  // many positions.
  double FlopsPerToken(int sequence_length) const override;

  // Follows worker/model/decoder/decoder_units.cc operation by operation: the results that autograd
  // keeps, and the temporaries that are alive at the same time (docs/fsdp.md, "Memory"). A change
  // there requires one here; a test compares it with an allocator's count.
  ModelMemory Memory(int64_t sequences, int64_t positions, int64_t element_bytes,
                     bool gpu) const override;

 private:
  const DecoderConfig config_;
};

// Reads the keys of transformers 5 (dtype, rope_parameters) and of older versions (torch_dtype,
// rope_theta, rope_scaling). Absent or null keys have transformers' defaults; hidden_size,
// num_hidden_layers, num_attention_heads, intermediate_size and vocab_size are required. Ignores
// the dtype, because the weights have their own. InvalidArgument names the key and the remedy: a
// value of the wrong type or out of range, head counts that do not divide, an odd head_dim, another
// class, layers with windows that contradict each other, or an unsupported feature (partial RoPE,
// scaling other than Llama 3's, other biases, dropout, a window where the class has none,
// quantization, a hidden_act other than silu). Requires one of DecoderTypes().
absl::StatusOr<std::shared_ptr<const Architecture>> ReadDecoder(absl::string_view model_type,
                                                                ConfigReader& reader);

// The keys of kDecoderKinds.
std::vector<absl::string_view> DecoderTypes();

}  // namespace distro
