// Which tensors of a manifest each unit of llama.cc uses: what shards and memory are planned by. Pure, without Torch.
#pragma once

#include <vector>

#include "common/layout/manifest.h"
#include "common/model_config/llama_config.h"

namespace distro::worker {

// Of the embedding, config.layers blocks, and the head: indices into the manifest, in the order in which the unit takes its
// parameters. Requires a manifest that holds exactly LlamaTensors(config).
std::vector<std::vector<int>> LlamaUnitTensors(const LlamaConfig& config, const Manifest& manifest);

}  // namespace distro::worker
