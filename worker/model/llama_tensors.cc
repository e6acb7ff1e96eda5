#include "worker/model/llama_tensors.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace distro::worker {
namespace {

std::vector<int> Find(const Manifest& manifest, const std::vector<std::string>& names) {
  std::vector<int> indices;
  for (const std::string& name : names) {
    const auto tensors = manifest.tensors();
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const TensorSpec& tensor) { return tensor.name == name; });
    indices.push_back(static_cast<int>(found - tensors.begin()));
  }
  return indices;
}

// In the order of Block::Parameter in llama.cc.
std::vector<std::string> BlockTensors(int layer) {
  std::vector<std::string> names = {
      "input_layernorm",  "self_attn.q_proj", "self_attn.k_proj",
      "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
      "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
  for (std::string& name : names) name = absl::StrCat("model.layers.", layer, ".", name, ".weight");
  return names;
}

}  // namespace

std::vector<std::vector<int>> LlamaUnitTensors(const LlamaConfig& config,
                                               const Manifest& manifest) {
  const std::string embedding = "model.embed_tokens.weight";
  std::vector<std::vector<int>> units = {Find(manifest, {embedding})};
  for (int layer = 0; layer < config.layers; ++layer)
    units.push_back(Find(manifest, BlockTensors(layer)));
  const std::string head = config.tied_embeddings ? embedding : "lm_head.weight";
  units.push_back(Find(manifest, {"model.norm.weight", head}));
  return units;
}

}  // namespace distro::worker
