// What each architecture of the family is: a row of switches (docs/decisions/0042). The row also
// says which keys of config.json are read, and what those are if absent whose default differs
// between classes of transformers; other defaults are in decoder.cc and layer_keys.cc.
#pragma once

#include "absl/strings/string_view.h"

namespace distro {

// Which layers may attend to the last `sliding_window` positions only.
enum class Windows {
  kNone,              // no layer
  kEveryLayer,        // all, or none where sliding_window is null
  kUpperLayers,       // with use_sliding_window those of layer_types; from max_window_layers on
  kLayersWithoutRope  // with use_sliding_window those of layer_types; those without RoPE
};

struct DecoderKind {
  absl::string_view model_type;
  absl::string_view class_name;  // in the key "architectures"

  bool qkv_bias = false;        // the projections of queries, keys and values have biases
  bool qk_norm = false;         // each head of queries and keys is normalized before RoPE
  bool no_rope_layers = false;  // that key says which layers have RoPE
  Windows windows = Windows::kNone;

  // What transformers takes where a key is absent.
  int default_kv_heads = 0;  // 0: num_attention_heads
  int default_head_dim = 0;  // 0: hidden_size / num_attention_heads
  int default_max_positions = 2048;
  double default_theta = 10000;
  bool default_tied = false;
  bool default_padding = false;  // an absent pad_token_id is a token
};

inline constexpr DecoderKind kDecoderKinds[] = {
    {.model_type = "llama", .class_name = "LlamaForCausalLM"},
    {.model_type = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .qkv_bias = true,
     .windows = Windows::kUpperLayers,
     .default_kv_heads = 32,
     .default_max_positions = 32768},
    {.model_type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .qk_norm = true,
     .windows = Windows::kUpperLayers,
     .default_kv_heads = 32,
     .default_head_dim = 128,
     .default_max_positions = 32768},
    {.model_type = "mistral",
     .class_name = "MistralForCausalLM",
     .windows = Windows::kEveryLayer,
     .default_kv_heads = 8,
     .default_max_positions = 131072},
    {.model_type = "smollm3",
     .class_name = "SmolLM3ForCausalLM",
     .no_rope_layers = true,
     .windows = Windows::kLayersWithoutRope,
     .default_kv_heads = 4,
     .default_max_positions = 32768,
     .default_theta = 2e6,
     .default_tied = true,
     .default_padding = true},
};

inline constexpr const DecoderKind& kLlama = kDecoderKinds[0];

}  // namespace distro
