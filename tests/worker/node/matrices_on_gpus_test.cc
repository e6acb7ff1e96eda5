// Newton-Schulz of matrices that the ranks of a node share, over NCCL on the model's GPUs: what one
// rank on a CPU makes of them, also where a rank of the last wave has no matrix.
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "tests/worker/fsdp/gpu_model/model_nccl.h"
#include "tests/worker/fsdp/gpu_model/torch_device.h"
#include "tests/worker/fsdp/ranks.h"
#include "worker/fsdp/nccl_communicator.h"
#include "worker/node/communicator_exchange.h"
#include "worker/node/torch_orthogonalizer.h"
#include "worker/rules/deltas/whole_matrices.h"
#include "worker/torch/float_tensor.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Communicators;
using ::distro::worker::testing::ModelDevice;
using ::distro::worker::testing::ModelGpus;
using ::distro::worker::testing::OnEveryRankTogether;
using ::testing::Each;
using ::testing::IsEmpty;

constexpr int kIterations = 5;
constexpr uint64_t kSeeds = 3;

using Tensors = std::vector<at::Tensor>;  // [tensors], each f32 [elements]

// Whether ranks have rows of their own, or all have all.
class MatricesOnGpusTest : public ::testing::TestWithParam<bool> {
 protected:
  at::Tensor Direction(int tensor) const {
    const at::Tensor x = at::arange(layout_.tensors()[tensor].matrix.elements, at::kFloat);
    return ((x + tensor) * 1.7).sin();
  }
  ShardPlan Shards(int ranks) const {
    return *ShardPlan::Create(layout_, {{0, 1, 2, 3, 4}}, ranks);
  }

  // Writes the rank's elements into `found`, those of all tensors.
  absl::Status Orthogonalize(const RankShard& runs, const RuleShard& shard, at::Device device,
                             Tensors* found) const {
    const at::NoGradGuard no_grad;
    const auto make = [&](size_t run, absl::Span<float> direction) {
      FloatTensor(direction, device).copy_(Of(runs.runs[run], Direction(runs.runs[run].tensor)));
      return absl::OkStatus();
    };
    const auto use = [&](size_t run, absl::Span<const float> direction) {
      Of(runs.runs[run], (*found)[runs.runs[run].tensor]).copy_(FloatTensor(direction, device));
      return absl::OkStatus();
    };
    return WholeMatrices(shard, needs_whole_, kIterations).Orthogonalize(make, use);
  }
  Tensors OnOneRank() const {
    const ShardPlan alone = Shards(1);
    const auto orthogonalizer = MakeTorchOrthogonalizer(at::kCPU, at::kCPU, at::kFloat);
    Tensors found = Nothing();
    const RuleShard shard = {
        .layout = &layout_, .runs = alone.shard(0).runs, .orthogonalizer = orthogonalizer.get()};
    EXPECT_EQ(Orthogonalize(alone.shard(0), shard, at::kCPU, &found), absl::OkStatus());
    return found;
  }
  // Of each rank.
  std::vector<Tensors> OnGpus(int ranks) const {
    const ShardPlan shards = Shards(ranks), alone = Shards(1);
    std::vector<at::Device> devices;
    for (int rank = 0; rank < ranks; ++rank) devices.push_back(ModelDevice(rank));
    Communicators communicators = MakeNcclCommunicators(testing::MakeModelNccl(), devices,
                                                        {.poll_interval = absl::Milliseconds(1)})
                                      .value();
    std::vector<Tensors> found(ranks);
    const auto body = [&](int rank, Communicator& communicator) {
      const at::Device device = ModelDevice(rank);
      const c10::DeviceGuard guard(device);
      const auto orthogonalizer = MakeTorchOrthogonalizer(device, device, at::kFloat);
      CommunicatorExchange exchange(&communicator, device, device);
      const RankShard& runs = GetParam() ? shards.shard(rank) : alone.shard(0);
      found[rank] = Nothing();
      return Orthogonalize(runs,
                           {.layout = &layout_,
                            .runs = runs.runs,
                            .orthogonalizer = orthogonalizer.get(),
                            .exchange = &exchange,
                            .shards = GetParam() ? &shards : nullptr},
                           device, &found[rank]);
    };
    EXPECT_THAT(OnEveryRankTogether(communicators, body), Each(absl::OkStatus()));
    return found;
  }

  const Layout layout_ = *Layout::Create(*Manifest::Create({{.name = "a", .shape = {200, 72}},
                                                            {.name = "b", .shape = {72, 150}},
                                                            {.name = "c", .shape = {130, 72}},
                                                            {.name = "d", .shape = {130, 72}},
                                                            {.name = "e", .shape = {130, 72}}}),
                                         16);

 private:
  static at::Tensor Of(const ShardRun& run, const at::Tensor& tensor) {
    return tensor.narrow(0, run.first_element, run.matrix.elements);
  }
  Tensors Nothing() const {
    Tensors zeros;
    for (const TensorLayout& tensor : layout_.tensors())
      zeros.push_back(at::zeros({tensor.matrix.elements}, at::kFloat));
    return zeros;
  }

  const std::vector<bool> needs_whole_ = std::vector<bool>(5, true);
};
INSTANTIATE_TEST_SUITE_P(RowsOfTheirOwn, MatricesOnGpusTest, ::testing::Bool());

TEST_P(MatricesOnGpusTest, AreThoseOfOneRankOnACpu) {
  const Tensors expected = OnOneRank();
  for (const int ranks : {2, 4}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, seed ", seed));
      ModelGpus::Get().Reset(seed);
      const std::vector<Tensors> found = OnGpus(ranks);
      EXPECT_THAT(ModelGpus::Get().failures(), IsEmpty());
      for (size_t tensor = 0; tensor < expected.size(); ++tensor) {
        at::Tensor sum = at::zeros(expected[tensor].sizes(), at::kFloat);
        for (const Tensors& of_rank : found) sum.add_(of_rank[tensor]);
        if (!GetParam()) sum.div_(ranks);
        EXPECT_LE(sum.sub(expected[tensor]).abs().max().item<float>(), 1e-5) << tensor;
      }
    }
  }
}

}  // namespace
}  // namespace distro::worker
