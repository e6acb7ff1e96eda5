// Makes the batches of a model's units from tokens on the host. On a device that pins host memory
// nothing waits for a copy: the tokens cross in pinned memory, and the tables once.
//
// cuDNN's attention plans for half a second for every shape that is new to it. So that a process
// has one, smaller batches are padded behind their tokens, where causal attention does not look.
//
// Not thread-safe. Borrows the architecture. Throws Torch's exceptions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/architecture.h"
#include "worker/model/model.h"
#include "worker/model/unit.h"

namespace distro::worker {

struct BatchShape {
  int64_t sequences = 0;
  int64_t positions = 0;
};

class BatchMaker {
 public:
  struct Place {
    at::Device device = at::kCPU;
    at::ScalarType type = at::kFloat;  // in which the units compute
    bool pins_host_memory = false;
    BatchShape padded_to = {};
  };

  // Requires an architecture that has units.
  BatchMaker(const Architecture* model, const Place& place) : model_(model), place_(place) {}

  // All copy the tokens, which must be valid (CheckBatch).
  // Of sequences of S + 1 tokens: position s predicts token s + 1. Padded with sequences.
  Batch Labelled(const TokenBatch& tokens);
  // Of sequences of S tokens: the last unit returns logits. Not padded.
  Batch Unlabelled(const TokenBatch& tokens);
  // The same of the last position only. Padded with positions.
  Batch Next(const TokenBatch& tokens);

 private:
  at::Tensor OnDevice(const TokenBatch& tokens, const BatchShape& least) const;
  std::vector<at::Tensor> Tables(int64_t positions);

  const Architecture* const model_;
  const Place place_;
  std::vector<at::Tensor> tables_;  // of the most positions so far
};

}  // namespace distro::worker
