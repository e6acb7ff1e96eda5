// Ranks on GPUs. Every test that needs more GPUs than there are is skipped by name.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/collectives.h"
#include "tests/worker/fsdp/communicator_suite.h"
#include "tests/worker/fsdp/node.h"
#include "tests/worker/fsdp/ranks.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/fsdp/cuda_device.h"
#include "worker/fsdp/nccl_communicator.h"
#include "worker/fsdp/nccl_library.h"
#include "worker/plan/memory_plan.h"
#include "worker/torch/cuda_torch.h"

namespace distro::worker {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

using ::distro::worker::testing::Communicators;
using ::distro::worker::testing::CommunicatorTest;
using ::distro::worker::testing::Cuts;
using ::distro::worker::testing::Finish;
using ::distro::worker::testing::Node;
using ::distro::worker::testing::NodeStep;
using ::distro::worker::testing::OnEveryRank;
using ::distro::worker::testing::RandomTokens;
using ::distro::worker::testing::TinyConfig;
using ::testing::Each;
using ::testing::HasSubstr;

#define NEEDS_GPUS(count) \
  if (VisibleGpus() < (count)) GTEST_SKIP() << "needs " << (count) << " GPU"

// What tensors have taken of Torch's caching allocator on the first GPU at most, since the last
// reset; not what it keeps in reserve.
int64_t PeakAllocatedBytes() {
  const auto stats = allocator::getDeviceStats(0);
  return stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .peak;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

// Sums in another order, of some hundred terms: 1e-4 of the norm is far above f32's rounding and
// far below a mistake.
TEST(RanksOnOneGpuTest, GivesCpusGradient) {
  NEEDS_GPUS(1);
  const std::vector<std::vector<int32_t>> batches = {
      RandomTokens(20, 40, 1), RandomTokens(20, 40, 2), RandomTokens(20, 40, 3)};
  const NodeStep expected = Node(TinyConfig(), 1, {}).Gradient(batches, 2);
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer,
                                  Sharding::kShardGradOp, Sharding::kFullShard}) {
    Node node(TinyConfig(), 2, {.sharding = sharding}, 1, at::Device("cuda:0"));
    std::vector<float> difference = node.Gradient(batches, 2).gradient;
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.gradient[i];
    EXPECT_LE(Norm(difference), 1e-4 * Norm(expected.gradient)) << Name(sharding);
  }
}

// What a GPU computes with by default. Its attention is another kernel than the CPU's, chosen by
// the size of the heads; bf16 stores some twenty activations and their gradients with 8 bits each.
TEST(RanksOnOneGpuTest, Bf16GivesTheCpusGradientToItsPrecision) {
  NEEDS_GPUS(1);
  const FsdpOptions options{.param_dtype = FloatType::kBf16};
  for (const int head_dim : {64, 256}) {
    DecoderConfig config = TinyConfig(/*heads=*/8, /*kv_heads=*/2);
    config.head_dim = head_dim;
    config.max_positions = 64;
    const std::vector<std::vector<int32_t>> batches = {RandomTokens(4 * 65, 40, 1)};
    const NodeStep expected = Node(config, 1, options).Gradient(batches, 4);
    const NodeStep found = Node(config, 1, options, 1, at::Device("cuda:0")).Gradient(batches, 4);
    std::vector<float> difference = found.gradient;
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= expected.gradient[i];
    EXPECT_GT(Norm(expected.gradient), 0.01);
    EXPECT_LE(Norm(difference), 3e-2 * Norm(expected.gradient)) << head_dim;
    EXPECT_NEAR(found.losses[0], expected.losses[0], 1e-2) << head_dim;
  }
}

TEST(GpuMemoryTest, MatchesPlan) {
  NEEDS_GPUS(1);
  DecoderConfig config = TinyConfig();
  config.hidden_size = 512;
  config.heads = config.kv_heads = 8;
  config.head_dim = 64;
  config.intermediate_size = 1536;
  config.vocab_size = 8000;
  config.max_positions = 512;
  SetUpCublas();
  for (const FloatType type : {FloatType::kF32, FloatType::kBf16}) {
    const FsdpOptions options{.param_dtype = type};
    Node node(config, 1, options, 1, at::Device("cuda:0"));
    MemoryRequest request;
    request.model = &node.model().architecture();
    request.layout = &node.layout();
    request.units = UnitTensors(*request.model, node.layout().manifest());
    request.options = options;
    request.sequences = 4;
    request.positions = 512;
    request.cuda = true;
    request.library_bytes = kCublasHandles * CublasWorkspaceBytes();
    at::globalContext().lazyInitDevice(at::kCUDA);  // or there is no allocator yet
    allocator::resetPeakStats(0);
    // In the first step autograd's thread gets its cuBLAS workspace after the peak.
    node.Gradient({RandomTokens(4 * 513, 8000, 1)}, 4, /*steps=*/2);
    const double planned = static_cast<double>(PlanMemory(request).value().ranks[0].device_bytes);
    const double measured = static_cast<double>(PeakAllocatedBytes());
    EXPECT_GE(measured, 100e6);
    EXPECT_NEAR(planned / measured, 1, 0.05) << planned << " planned, " << measured << " measured";
  }
}

// --micro_batch_samples auto plans anew after an attempt that ran out of memory.
TEST(GpuMemoryTest, CountsCachedAsFree) {
  NEEDS_GPUS(1);
  constexpr int64_t kBytes = int64_t{1} << 30;
  at::zeros({1}, at::TensorOptions(at::kFloat).device(at::kCUDA));  // makes the context
  const int64_t before = MemoryOfGpu(0)->free_bytes;
  at::zeros({kBytes}, at::TensorOptions(at::kByte).device(at::kCUDA));
  EXPECT_GT(MemoryOfGpu(0)->free_bytes, before - kBytes / 2);
}

at::Device DeviceOf(int rank) { return {at::kCUDA, static_cast<c10::DeviceIndex>(rank)}; }

Communicators MakeCommunicators(const NcclOptions& options, int ranks = VisibleGpus()) {
  std::vector<at::Device> devices;
  for (int rank = 0; rank < ranks; ++rank) devices.push_back(DeviceOf(rank));
  return MakeNcclCommunicators(NcclLibrary(), devices, options).value();
}

// None without a GPU.
std::vector<testing::RanksOfAKind> GpuRanks() {
  std::vector<testing::RanksOfAKind> kinds;
  for (int ranks = 1; ranks <= VisibleGpus(); ++ranks) {
    testing::RanksOfAKind kind;
    kind.name = "Gpus";
    kind.ranks = ranks;
    kind.make = [](int number, uint64_t) { return MakeCommunicators({}, number); };
    kind.device = DeviceOf;
    kinds.push_back(kind);
  }
  return kinds;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorTest);
INSTANTIATE_TEST_SUITE_P(OfThisMachine, CommunicatorTest, ::testing::ValuesIn(GpuRanks()),
                         CommunicatorTest::NameOf);

// While operations are under way, each rank in its turn returns memory to the driver, takes some
// from it, and copies from memory that is not pinned: calls that may wait for what peers enqueued.
TEST(NcclCommunicatorTest, RanksMayMakeCallsThatWaitForDevices) {
  NEEDS_GPUS(2);
  Communicators communicators = MakeCommunicators({.watchdog = absl::Seconds(30)});
  const int ranks = VisibleGpus();
  const auto body = [&](int rank, Communicator& communicator) -> absl::Status {
    const absl::Status ready = UseGpu(rank);
    if (!ready.ok()) return ready;
    const std::vector<int64_t> cuts = Cuts(ranks);
    const auto options = at::TensorOptions(at::kFloat).device(DeviceOf(rank));
    const at::Tensor shard = at::arange(cuts[rank], cuts[rank + 1], options);
    const at::Tensor whole = at::zeros({cuts.back()}, options);
    for (int i = 0; i < 100 * ranks; ++i) {
      const auto transfer = communicator.StartAllGather("a", cuts, shard, whole);
      if (i % ranks == rank) {
        allocator::emptyCache();
        at::zeros({(1 << 20) + i}, at::kFloat).to(DeviceOf(rank));
      }
      const absl::Status status = Finish(communicator, transfer);
      if (!status.ok()) return status;
    }
    EXPECT_TRUE(whole.equal(at::arange(cuts.back(), options)));
    return communicator.Barrier("end");
  };
  EXPECT_THAT(OnEveryRank(communicators, body), Each(absl::OkStatus()));
}

TEST(NcclCommunicatorTest, NamesAbortedRank) {
  NEEDS_GPUS(2);
  for (int victim = 0; victim < VisibleGpus(); ++victim) {
    Communicators communicators = MakeCommunicators({});
    const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
      const absl::Status ready = UseGpu(rank);
      if (!ready.ok()) return ready;
      if (rank != victim) return communicator.Barrier("thing");
      communicator.Abort(absl::DataLossError("bad page"));
      return absl::OkStatus();
    });
    for (int rank = 0; rank < VisibleGpus(); ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(statuses[rank].code(), absl::StatusCode::kAborted);
      EXPECT_THAT(statuses[rank].message(), HasSubstr(absl::StrCat("rank ", victim, " failed")));
    }
  }
}

// One rank never comes; the others give up on their own.
TEST(NcclCommunicatorTest, EndsOperationOfMissingRank) {
  NEEDS_GPUS(2);
  Communicators communicators = MakeCommunicators({.watchdog = absl::Seconds(2)});
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    const absl::Status ready = UseGpu(rank);
    if (!ready.ok() || rank == 0) return ready;
    return communicator.Barrier("thing");
  });
  for (int rank = 1; rank < VisibleGpus(); ++rank) {
    EXPECT_EQ(statuses[rank].code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(statuses[rank].message(), HasSubstr("\"thing\": rank 0 did not arrive"));
  }
}

}  // namespace
}  // namespace distro::worker
