// A module on a GPU whose streams run late (tests/worker/fsdp/gpu_model).
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
TEST_F(ModuleOnGpuTest, WhatTheProgramHasEnqueuedIsDoneBeforeTheTrainingThreadGoesOn) {
  using Program = std::optional<Session>;
  const std::function<void(Program&)> ways[] = {
      [](Program& session) { EXPECT_FALSE(session->Start().ok()) << "it has no name"; },
      [](Program& session) { EXPECT_FALSE(session->Answer(0).ok()) << "nothing is asked"; },
      [](Program& session) { session->Close(); },
      [](Program& session) { session.reset(); },
  };
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < std::size(ways); ++i) {
    SCOPED_TRACE(i);
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

}  // namespace
}  // namespace distro::worker
