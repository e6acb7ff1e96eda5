#include "tests/worker/fsdp/node.h"

#include <algorithm>

#include "common/model/init_weights.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/counting_allocator.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/fsdp/rank_buffer.h"
#include "worker/fsdp/rank_threads.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/fsdp/unit_driver.h"
#include "worker/model/unit.h"

namespace distro::worker::testing {
namespace {

Layout MakeLayout(const DecoderConfig& config) {
  return Layout::Create(Manifest::Create(Decoder(config).Tensors()).value(), /*segment_blocks=*/4)
      .value();
}

int64_t Place(const ShardRun& run, bool sharded) {
  return sharded ? run.shard_offset : run.whole_offset;
}

}  // namespace

// One rank's part of the work; lives on its thread.
struct Node::Rank {
  Rank(const Node& of, Communicator& communicator, MemoryCounter* memory)
      : node(of),
        rank(communicator.rank()),
        driver(node.options_, node.device_,
               {.model = node.model_.get(),
                .shards = node.shards_.get(),
                .whole = node.whole_.get(),
                .communicator = &communicator,
                .memory = memory}),
        parameters(Make(MemoryCategory::kParameters, driver.parameter_elements(), memory)),
        gradient(Make(MemoryCategory::kGradients, driver.gradient_elements(), memory)) {
    const at::Tensor host = at::zeros({parameters.elements()}, at::kFloat);
    const bool sharded = ShardsParameters(node.options_.sharding);
    const ShardPlan& plan = sharded ? *node.shards_ : *node.whole_;
    for (const ShardRun& run : plan.shard(sharded ? rank : 0).runs) {
      const auto from = node.parameters_.tensor(run.tensor);
      std::copy_n(from.data() + run.first_element, run.matrix.elements,
                  host.mutable_data_ptr<float>() + run.shard_offset);
    }
    at::Tensor(parameters.tensor()).copy_(host);
  }

  RankBuffer Make(MemoryCategory category, int64_t elements, MemoryCounter* memory) const {
    return RankBuffer::Create(category, elements, node.device_, memory).value();
  }

  // Of the runs that this rank has to have after a step.
  std::vector<float> Collect() const {
    const bool all = node.options_.sharding == Sharding::kNoShard;
    const bool sharded = ShardsGradients(node.options_.sharding);
    std::vector<float> elements(node.layout_.elements(), 0.0f);
    std::vector<int64_t> offsets = {0};
    for (const TensorLayout& tensor : node.layout_.tensors()) {
      offsets.push_back(offsets.back() + tensor.matrix.elements);
    }
    const ShardPlan& plan = all ? *node.whole_ : *node.shards_;
    const at::Tensor host = gradient.tensor().to(at::kCPU);
    for (const ShardRun& run : plan.shard(all ? 0 : rank).runs) {
      std::copy_n(host.const_data_ptr<float>() + Place(run, sharded), run.matrix.elements,
                  elements.data() + offsets[run.tensor] + run.first_element);
    }
    return elements;
  }

  const Node& node;
  const int rank;
  UnitDriver driver;
  RankBuffer parameters;
  RankBuffer gradient;
};

Node::Node(const DecoderConfig& config, int ranks, const FsdpOptions& options, uint64_t seed,
           at::Device device)
    : options_(options),
      ranks_(ranks),
      device_(device),
      layout_(MakeLayout(config)),
      parameters_(layout_),
      model_(Model::Create(MakeLlama(config), layout_).value()),
      shards_(std::make_unique<ShardPlan>(
          ShardPlan::Create(layout_, UnitTensors(Decoder(config), layout_.manifest()), ranks)
              .value())),
      whole_(std::make_unique<ShardPlan>(
          ShardPlan::Create(layout_, UnitTensors(Decoder(config), layout_.manifest()), 1).value())),
      memory_(ranks),
      counted_peaks_(ranks) {
  const bool cuda = device.is_cuda() || options.cpu_offload;
  EXPECT_TRUE(Validate(options, cuda ? DeviceKind::kCuda : DeviceKind::kCpu).ok());
  EXPECT_TRUE(InitWeights(Decoder(config), layout_, seed, &parameters_).ok());
}

Node::~Node() = default;

NodeStep Node::Gradient(const std::vector<std::vector<int32_t>>& micro_batches, int sequences,
                        int steps) {
  const int count = static_cast<int>(micro_batches.size());
  NodeStep step{.losses = std::vector<double>(count),
                .by_rank = std::vector<std::vector<float>>(ranks_),
                .gradient = {}};
  const auto body = [&](int rank, Communicator& communicator) {
    Rank own(*this, communicator, &memory_[rank]);
    ResetThreadPeak();
    for (int i = 0; i < steps; ++i) {
      for (int first = 0; first < count; first += ranks_) {
        TokenBatch batch{.tokens = {}, .sequences = sequences};
        if (first + rank < count) batch.tokens = micro_batches[first + rank];
        const auto loss = own.driver.Gradient(
            first + rank < count ? &batch : nullptr, own.parameters.tensor(),
            first == 0 ? Accumulation::kStore : Accumulation::kAdd, own.gradient.tensor());
        if (!loss.ok()) return loss.status();
        if (first + rank < count) step.losses[first + rank] = *loss;
      }
      const absl::Status finished = own.driver.FinishGradient(own.gradient.tensor());
      if (!finished.ok()) return finished;
    }
    counted_peaks_[rank] = CountedMemory().peak;
    step.by_rank[rank] = own.Collect();
    return absl::OkStatus();
  };
  RankThreads threads(MakeThreadGroup(ranks_, {})->TakeCommunicators(), {});
  const absl::Status status = threads.Run("gradient", body);
  EXPECT_TRUE(status.ok()) << status;
  step.gradient = step.by_rank[0];
  for (int rank = 1; rank < ranks_ && options_.sharding != Sharding::kNoShard; ++rank) {
    for (size_t i = 0; i < step.gradient.size(); ++i) step.gradient[i] += step.by_rank[rank][i];
  }
  return step;
}

std::vector<double> Node::Losses(const std::vector<std::vector<int32_t>>& batches, int sequences) {
  std::vector<double> losses(ranks_);
  RankThreads threads(MakeThreadGroup(ranks_, {})->TakeCommunicators(), {});
  const absl::Status status = threads.Run("loss", [&](int rank, Communicator& communicator) {
    Rank own(*this, communicator, &memory_[rank]);
    const bool has = rank < static_cast<int>(batches.size());
    TokenBatch batch{.tokens = {}, .sequences = sequences};
    if (has) batch.tokens = batches[rank];
    const auto loss = own.driver.Loss(has ? &batch : nullptr, own.parameters.tensor());
    losses[rank] = loss.value_or(-1);
    return loss.status();
  });
  EXPECT_TRUE(status.ok()) << status;
  losses.resize(batches.size());
  return losses;
}

}  // namespace distro::worker::testing
