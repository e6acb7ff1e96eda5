// A node's gradient over NCCL on the model's GPUs, whose streams lag and whose freed memory is used
// again at once: the gradient of ranks on a CPU, and no mistake that the model finds.
#include <atomic>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/every_strategy.h"
#include "tests/worker/fsdp/failing_communicator.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "tests/worker/fsdp/gpu_model/model_nccl.h"
#include "tests/worker/fsdp/gpu_model/torch_device.h"
#include "tests/worker/fsdp/ranks.h"
#include "worker/fsdp/nccl_communicator.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/fsdp/unit_driver.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Communicators;
using ::distro::worker::testing::FailingCommunicator;
using ::distro::worker::testing::ModelDevice;
using ::distro::worker::testing::ModelGpus;
using ::distro::worker::testing::OnEveryRank;
using ::distro::worker::testing::OnEveryRankTogether;
using ::distro::worker::testing::RandomTokens;
using ::testing::Each;
using ::testing::IsEmpty;

constexpr uint64_t kSeeds = 3;

class UnitsOnGpusTest : public testing::EveryStrategyTest {
 protected:
#ifdef __SANITIZE_THREAD__
  // LibTorch is built without it: how its threads of a device count references is not seen.
  void SetUp() override { GTEST_SKIP() << "autograd has threads for devices"; }
#endif
  static Communicators Make() {
    return MakeNcclCommunicators(testing::MakeModelNccl(), {ModelDevice(0), ModelDevice(1)},
                                 {.poll_interval = absl::Milliseconds(1)})
        .value();
  }

  // On the host, after two rounds of micro-batches, of which one rank has no part in the second.
  static absl::StatusOr<at::Tensor> Gradient(UnitDriver& driver, int rank, at::Device device) {
    const at::Tensor parameters =
        at::arange(driver.parameter_elements(), at::kFloat).fmod(7).mul(0.01).to(device);
    const at::Tensor gradient = at::zeros({driver.gradient_elements()}, at::kFloat).to(device);
    for (int round = 0; round < 2; ++round) {
      const std::vector<int32_t> tokens = RandomTokens(12, 40, rank);
      const TokenBatch batch{.tokens = tokens, .sequences = 1};
      const bool has_part = round == 0 || rank == 0;
      const auto loss =
          driver.Gradient(has_part ? &batch : nullptr, parameters,
                          round == 0 ? Accumulation::kStore : Accumulation::kAdd, gradient);
      if (!loss.ok()) return loss.status();
    }
    const absl::Status status = driver.FinishGradient(gradient);
    if (!status.ok()) return status;
    return gradient.cpu();
  }
  std::vector<at::Tensor> Gradients(Communicators& communicators,
                                    const std::function<at::Device(int rank)>& device) {
    std::vector<at::Tensor> gradients(kRanks);
    const auto body = [&](int rank, Communicator& communicator) {
      const c10::DeviceGuard guard(device(rank));  // as UseGpu of a worker's rank
      UnitDriver driver(GetParam(), device(rank), DependenciesOf(rank, communicator));
      const auto gradient = Gradient(driver, rank, device(rank));
      gradients[rank] = gradient.value_or(at::Tensor());
      return gradient.status();
    };
    EXPECT_THAT(OnEveryRankTogether(communicators, body), Each(absl::OkStatus()));
    return gradients;
  }
};

TEST_P(UnitsOnGpusTest, GivesCpusGradient) {
  Communicators threads = MakeThreadGroup(kRanks, {})->TakeCommunicators();
  const std::vector<at::Tensor> expected =
      Gradients(threads, [](int) { return at::Device(at::kCPU); });
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ModelGpus::Get().Reset(seed);
    Communicators communicators = Make();
    const std::vector<at::Tensor> gradients = Gradients(communicators, ModelDevice);
    communicators.clear();
    EXPECT_THAT(ModelGpus::Get().failures(), IsEmpty());
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(gradients[rank].defined());
      EXPECT_LE(gradients[rank].sub(expected[rank]).abs().max().item<float>(), 1e-6) << rank;
    }
  }
}

// Every Start of a pass fails once. The rank then uses what is freed: what was under way does not
// write there any more.
TEST_P(UnitsOnGpusTest, MemoryOfAFailedPassIsFreedAfterItsTransfers) {
  int fails_at = 0;
  for (std::atomic<bool> has_failed = true; has_failed; ++fails_at) {
    SCOPED_TRACE(absl::StrCat("start ", fails_at));
    ModelGpus::Get().Reset(static_cast<uint64_t>(fails_at));
    Communicators communicators = Make();
    has_failed = false;
    OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
      const c10::DeviceGuard guard(ModelDevice(rank));
      FailingCommunicator failing(&communicator, fails_at);
      {
        UnitDriver driver(GetParam(), ModelDevice(rank), DependenciesOf(rank, failing));
        Gradient(driver, rank, ModelDevice(rank)).IgnoreError();
      }
      if (failing.has_failed()) has_failed = true;
      for (const UnitFlat& unit : shards_.units())
        at::zeros({unit.elements}, at::TensorOptions(at::kFloat).device(ModelDevice(rank)));
      return absl::OkStatus();
    });
    communicators.clear();
    EXPECT_THAT(ModelGpus::Get().failures(), IsEmpty());
  }
  EXPECT_GT(fails_at, 2);
}

INSTANTIATE_TEST_SUITE_P(Strategies, UnitsOnGpusTest, UnitsOnGpusTest::Strategies(),
                         UnitsOnGpusTest::NameOf);

}  // namespace
}  // namespace distro::worker
