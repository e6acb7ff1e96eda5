// How many bytes the units of llama.cc take while they compute: which results autograd keeps and which temporaries live at the
// same time, followed operation by operation (docs/fsdp.md, "Memory"). A change of llama.cc changes this; a test compares it
// with what an allocator counts. Pure, without Torch.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model_config/llama_config.h"

namespace distro::worker {

// Bytes of one unit for one micro-batch. Parameters, the unit's input and the gradient of its output are not in them.
struct UnitMemory {
  int64_t output = 0;
  int64_t saved = 0;         // kept by the graph from forward to backward, without the output
  int64_t forward_peak = 0;  // most at a time in forward with a graph, output and saved included
  int64_t plain_peak = 0;    // the same without a graph
  int64_t backward_peak =
      0;  // most at a time in backward, from `saved` on; gradients included, output not
  int64_t gradients = 0;  // of the parameters, in the type of the parameters
};

// Embedding, blocks, head, in the order of LlamaUnits. `element_bytes` of what computes: 4 (f32) or 2 (bf16). With a CPU's
// kernels; those of CUDA need no more than some workspace beside.
std::vector<UnitMemory> LlamaUnitMemory(const LlamaConfig& config, int64_t sequences,
                                        int64_t positions, int64_t element_bytes);

}  // namespace distro::worker
