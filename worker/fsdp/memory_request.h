// What a plan of memory is made for (worker/fsdp/memory_plan.h). Plain data, without Torch.
#pragma once

#include <vector>

#include "common/layout/layout.h"
#include "common/model/architecture.h"
#include "worker/fsdp/fsdp_options.h"

namespace distro::worker {

struct MemoryRequest {
  // Both borrowed.
  const Architecture* model = nullptr;
  const Layout* layout = nullptr;
  std::vector<std::vector<int>> units;  // of UnitTensors
  int ranks = 1;
  FsdpOptions options;
  int sequences = 1;       // of a micro-batch
  int positions = 1;       // S
  int kept_per_block = 0;  // K; pending coefficients take 6 bytes each. 0: no optimizer
  bool lookahead = false;  // overlap: a second copy of the parameters
};

}  // namespace distro::worker
