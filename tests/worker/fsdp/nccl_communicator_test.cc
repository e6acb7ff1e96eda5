// Communicators over NCCL on the model's GPUs: the results of every operation while streams lag and
// ranks are late, and no mistake that the model finds.
#include "worker/fsdp/nccl_communicator.h"

#include "gtest/gtest.h"
#include "tests/worker/fsdp/communicator_suite.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "tests/worker/fsdp/gpu_model/model_nccl.h"
#include "tests/worker/fsdp/gpu_model/torch_device.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::CommunicatorTest;
using ::distro::worker::testing::ModelGpus;

constexpr uint64_t kSeeds = 8;

std::vector<testing::RanksOfAKind> ModelRanks() {
  std::vector<testing::RanksOfAKind> kinds;
  for (int ranks = 1; ranks <= ModelGpus::kDevices; ++ranks) {
    testing::RanksOfAKind kind;
    kind.name = "Gpus";
    kind.ranks = ranks;
    kind.seeds = kSeeds;
    kind.make = [](int number, uint64_t seed) {
      ModelGpus::Get().Reset(seed);
      std::vector<at::Device> devices;
      for (int rank = 0; rank < number; ++rank) devices.push_back(testing::ModelDevice(rank));
      return MakeNcclCommunicators(testing::MakeModelNccl(), devices,
                                   {.poll_interval = absl::Milliseconds(1)})
          .value();
    };
    kind.device = testing::ModelDevice;
    kind.failures = [] { return ModelGpus::Get().failures(); };
    kinds.push_back(kind);
  }
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(OfTheModel, CommunicatorTest, ::testing::ValuesIn(ModelRanks()),
                         CommunicatorTest::NameOf);

}  // namespace
}  // namespace distro::worker
