// A node of R rank threads that computes gradients of a small model, for tests.
#pragma once

#include <memory>
#include <vector>

#include "common/model/decoder/decoder.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "worker/model/model.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_counter.h"
#include "worker/plan/shard_plan.h"
#include "worker/torch/torch.h"

namespace distro::worker::testing {

struct NodeStep {
  std::vector<double> losses;  // by micro-batch
  // The gradient by rank, and of all ranks together: f32, every tensor in manifest order; zeros
  // where a rank has no run.
  std::vector<std::vector<float>> by_rank;
  std::vector<float> gradient;
};

class Node {
 public:
  // Weights are random, from the seed. Aborts when the config does not make a model.
  Node(const DecoderConfig& config, int ranks, const FsdpOptions& options, uint64_t seed = 1,
       at::Device device = at::kCPU);
  ~Node();

  // Takes `steps` equal steps over the micro-batches and returns the gradient of the last one;
  // EXPECTs every status to be OK.
  NodeStep Gradient(const std::vector<std::vector<int32_t>>& micro_batches, int sequences,
                    int steps = 1);
  // Mean losses of the batches, one a rank at most.
  std::vector<double> Losses(const std::vector<std::vector<int32_t>>& batches, int sequences);

  const Layout& layout() const { return layout_; }
  const Model& model() const { return *model_; }
  const ShardPlan& plan() const { return *shards_; }
  const TensorBuffer& parameters() const { return parameters_; }
  const MemoryCounter& memory(int rank) const { return memory_[rank]; }
  // By rank, the peak memory of its thread in the last Gradient, with CountCpuMemory.
  const std::vector<int64_t>& counted_peaks() const { return counted_peaks_; }

 private:
  struct Rank;

  const FsdpOptions options_;
  const int ranks_;
  const at::Device device_;
  const Layout layout_;
  TensorBuffer parameters_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ShardPlan> shards_;
  std::unique_ptr<ShardPlan> whole_;
  std::vector<MemoryCounter> memory_;
  std::vector<int64_t> counted_peaks_;
};

}  // namespace distro::worker::testing
