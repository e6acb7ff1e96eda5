// A module on a GPU whose streams run late (tests/worker/fsdp/gpu_model).
#include <algorithm>
#include <functional>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "tests/worker/fsdp/gpu_model/torch_device.h"
#include "worker/python/session.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::ModelDevice;
using ::distro::worker::testing::ModelGpus;
using ::testing::Each;
using ::testing::IsEmpty;

class ModuleOnGpuTest : public ::testing::Test {
 protected:
  ModuleOnGpuTest() { gpus().Reset(/*seed=*/1); }
  static ModelGpus& gpus() { return ModelGpus::Get(); }

  static at::Tensor Parameter() {
    at::Tensor tensor =
        at::zeros({100}, at::TensorOptions(at::kFloat).device(ModelDevice(0))).requires_grad_();
    c10::impl::VirtualGuardImpl(at::kPrivateUse1).synchronizeDevice(0);
    return tensor;
  }
};

// The program is inside torch.cuda.stream(s); the training thread has the default stream.
TEST_F(ModuleOnGpuTest, FinishesWorkOfProgramFirst) {
  using Program = std::optional<Session>;
  const std::function<void(Program&)> ways[] = {
      [](Program& session) { EXPECT_FALSE(session->Start().ok()) << "it has no name"; },
      [](Program& session) { EXPECT_FALSE(session->Reply({}).ok()) << "nothing is asked"; },
      [](Program& session) { session->Close({}); },
      [](Program& session) { session.reset(); },
  };
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < std::size(ways); ++i) {
    SCOPED_TRACE(i);
    gpus().Reset(/*seed=*/1);
    at::Tensor tensor = Parameter();
    Program session;
    session.emplace(SessionOptions(), *ModuleTensors::Create({"a"}, {tensor}));
    {
      const c10::StreamGuard on_another(gpus().NewStream(ModelDevice(0)));
      tensor.fill_(1);
    }
    ways[i](session);
    tensor.add_(1);
    EXPECT_THAT(gpus().failures(), IsEmpty());
  }
}

TEST_F(ModuleOnGpuTest, PinsHostsCopies) {
  const at::Tensor tensor = Parameter();
  auto module = ModuleTensors::Create({"a"}, {tensor});
  ASSERT_TRUE(module.ok()) << module.status();
  for (const auto& spans : {module->ReadElements(), module->Gradients()}) {
    ASSERT_TRUE(spans.ok()) << spans.status();
    EXPECT_THAT((*spans)[0], Each(0)) << "what the device has";
    EXPECT_TRUE(at::from_blob((*spans)[0].data(), {1}).is_pinned());
  }
  EXPECT_EQ(module->MemoryOf(0).host, 2 * 512) << "400 bytes, rounded up";
  std::ranges::fill((*module->Elements())[0], 5.0f);
  ASSERT_TRUE(module->ShowElements().ok());
  std::ranges::fill((*module->Elements())[0], 6.0f);  // too late
  EXPECT_TRUE(tensor.detach().cpu().eq(5).all().item<bool>());
  EXPECT_THAT(gpus().failures(), IsEmpty());
}

}  // namespace
}  // namespace distro::worker
