// A small Llama with random weights, for tests: the model, its layout, its parameters. Torch runs
// with one thread.
#pragma once

#include <memory>
#include <vector>

#include "common/model/decoder/decoder.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "worker/model/model.h"

namespace distro::worker::testing {

inline DecoderConfig TinyConfig(int heads = 4, int kv_heads = 2, bool tied = false) {
  return {.hidden_size = 32,
          .layers = 2,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = 8,
          .intermediate_size = 48,
          .vocab_size = 40,
          .max_positions = 16,
          .rms_norm_eps = 1e-5f,
          .rope = {.theta = 10000},
          .tied_embeddings = tied,
          .initializer_range = 0.2f};  // large, so that every part shows
}

inline std::shared_ptr<const Architecture> MakeLlama(const DecoderConfig& config) {
  return std::make_shared<const Decoder>(config);
}

// Aborts when the config does not make a model.
struct TinyModel {
  explicit TinyModel(const DecoderConfig& config, uint64_t seed = 1);

  Layout layout;
  TensorBuffer parameters;
  std::unique_ptr<Model> model;
};

// `count` tokens in 0..vocabulary - 1.
std::vector<int32_t> RandomTokens(int count, int vocabulary, uint64_t seed);

// Every element of every tensor, in manifest order.
std::vector<float> Flat(const TensorBuffer& buffer);

}  // namespace distro::worker::testing
