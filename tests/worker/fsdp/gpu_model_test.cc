// The rules of the model of GPUs: what lags, and which mistakes it finds.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "tests/worker/fsdp/gpu_model/model_nccl.h"
#include "tests/worker/fsdp/gpu_model/torch_device.h"
#include "worker/torch/float_tensor.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::MakeModelNccl;
using ::distro::worker::testing::ModelDevice;
using ::distro::worker::testing::ModelGpus;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kElements = 128;  // a unit of the allocator

class GpuModelTest : public ::testing::Test {
 protected:
  GpuModelTest() { gpus().Reset(/*seed=*/1); }
  static ModelGpus& gpus() { return ModelGpus::Get(); }

  static at::Tensor Ones(int device) {
    return at::zeros({kElements}, at::TensorOptions(at::kFloat).device(ModelDevice(device)))
        .fill_(1);
  }
  static c10::Stream Current(int device) {
    return c10::impl::VirtualGuardImpl(at::kPrivateUse1).getStream(ModelDevice(device));
  }
  static c10::Event Recorded(const c10::Stream& stream) {
    c10::Event event(at::kPrivateUse1);
    event.record(stream);
    return event;
  }
};

TEST_F(GpuModelTest, RunsStreamWhenAwaited) {
  const at::Tensor ones = Ones(0);
  const auto* const memory = static_cast<const float*>(ones.data_ptr());
  EXPECT_NE(memory[0], 1.0f);
  Current(0).synchronize();
  EXPECT_EQ(memory[0], 1.0f);
}

TEST_F(GpuModelTest, FinishesEventWhenQueried) {
  const at::Tensor ones = Ones(0);
  const c10::Event event = Recorded(Current(0));
  while (!event.query()) {
  }
  EXPECT_EQ(static_cast<const float*>(ones.data_ptr())[0], 1.0f);
}

TEST_F(GpuModelTest, FindsAccessesThatNothingOrders) {
  const at::Tensor ones = Ones(0);
  {
    const c10::StreamGuard on_other(gpus().NewStream(ModelDevice(0)));
    ones.add_(ones);
  }
  EXPECT_THAT(gpus().failures(),
              ElementsAre("GPU 0: add_ writes memory that GPU 0: fill_ writes, and nothing orders "
                          "them",
                          HasSubstr("add_ reads memory that GPU 0: fill_ writes"),
                          HasSubstr("add_ reads memory that GPU 0: fill_ writes")));
}

TEST_F(GpuModelTest, OrdersByEvent) {
  const at::Tensor ones = Ones(0);
  const c10::Stream other = gpus().NewStream(ModelDevice(0));
  Recorded(Current(0)).block(other);
  {
    const c10::StreamGuard on_other(other);
    ones.add_(ones);
  }
  Recorded(other).block(Current(0));
  EXPECT_EQ(ones.sum().item<float>(), 2.0f * kElements);
  EXPECT_THAT(gpus().failures(), IsEmpty());
}

TEST_F(GpuModelTest, OrdersByWaitingHost) {
  const at::Tensor ones = Ones(0);
  Current(0).synchronize();
  const c10::StreamGuard on_other(gpus().NewStream(ModelDevice(0)));
  ones.add_(ones);
  EXPECT_THAT(gpus().failures(), IsEmpty());
}

// Another stream has not read it yet.
TEST_F(GpuModelTest, FreedMemoryIsGivenOutAtOnce) {
  at::Tensor ones = Ones(0);
  const void* const memory = ones.data_ptr();
  const c10::Stream other = gpus().NewStream(ModelDevice(0));
  Recorded(Current(0)).block(other);
  {
    const c10::StreamGuard on_other(other);
    ones.add_(1);
  }
  ones.reset();
  EXPECT_THAT(gpus().failures(), IsEmpty());
  EXPECT_EQ(Ones(0).data_ptr(), memory);
  EXPECT_THAT(gpus().failures(), Contains(AllOf(HasSubstr("fill_ writes"), HasSubstr("add_"))));
}

TEST_F(GpuModelTest, MemoryIsThatOfADeviceAndNoMemoryIsNobodys) {
  const at::Tensor ones = Ones(1);
  const auto of = [](void* memory, int64_t elements) {
    const at::Device device = ModelDevice(1);
    return at::from_blob(memory, {elements}, at::TensorOptions(at::kFloat).device(device));
  };
  EXPECT_EQ(of(ones.data_ptr<float>() + 7, 3).device(), ModelDevice(1));
  EXPECT_THROW(of(nullptr, 0), c10::Error);
  const at::Tensor none = FloatTensor({}, ModelDevice(1));
  EXPECT_EQ(none.device(), ModelDevice(1));
  EXPECT_EQ(none.numel(), 0);
}

// Two ranks' handles, and memory of each.
class ModelNcclTest : public GpuModelTest {
 protected:
  ModelNcclTest() {
    nccl_->Connect({ModelDevice(0), ModelDevice(1)}, &comms_);
    memory_ = {Ones(0), Ones(1)};
  }
  ~ModelNcclTest() override {
    comms_.clear();
    for (int rank = 0; rank < 2; ++rank) Current(rank).synchronize();
  }

  void Broadcast(int rank, int64_t count, int root = 0) {
    void* const memory = memory_[rank].data_ptr();
    nccl_->GroupStart();
    comms_[rank]->Broadcast(memory, memory, count, at::kFloat, root, Current(rank));
    nccl_->GroupEnd();
    while (comms_[rank]->AsyncError() == NcclResult::kInProgress) {
    }
  }
  // More memory than there is.
  static at::Tensor Allocate() {
    return at::empty({17 * kElements}, at::TensorOptions(at::kFloat).device(ModelDevice(0)));
  }

  const std::shared_ptr<testing::ModelNccl> nccl_ = MakeModelNccl();
  std::vector<std::unique_ptr<NcclComm>> comms_;
  std::vector<at::Tensor> memory_;
};

TEST_F(ModelNcclTest, RunsKernelOnceAllPeersEnqueued) {
  memory_[0].fill_(7);
  Broadcast(0, kElements);
  const c10::Event event = Recorded(Current(0));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(event.query());
  Broadcast(1, kElements);
  Current(1).synchronize();
  EXPECT_EQ(static_cast<const float*>(memory_[1].data_ptr())[kElements - 1], 7.0f);
}

TEST_F(ModelNcclTest, FindsBlockingCallBesideWaitingKernel) {
  Allocate().fill_(1);  // loads the kernel
  Broadcast(0, kElements);
  EXPECT_THROW(at::empty({1 << 20}, at::TensorOptions(at::kFloat).device(ModelDevice(1))),
               c10::Error);
  EXPECT_THROW(memory_[1].cpu(), c10::Error);
  EXPECT_THROW(memory_[1].add_(1), c10::Error);  // its first use
  EXPECT_THAT(gpus().failures(),
              ElementsAre(AllOf(HasSubstr("an allocation of 4194304 bytes may wait for GPU 0: "
                                          "broadcast"),
                                HasSubstr("waits for a peer")),
                          HasSubstr("not pinned"), HasSubstr("first use of add_")));
}

TEST_F(ModelNcclTest, AllowsBlockingCallOnceAllEnqueued) {
  for (int rank = 0; rank < 2; ++rank) Broadcast(rank, kElements);
  Allocate();
  memory_[1].cpu();
  EXPECT_THAT(gpus().failures(), IsEmpty());
}

TEST_F(ModelNcclTest, FindsCallsThatDiffer) {
  Broadcast(0, kElements);
  Broadcast(1, kElements - 1);
  Broadcast(0, 1, /*root=*/0);
  Broadcast(1, 1, /*root=*/1);
  EXPECT_THAT(gpus().failures(),
              ElementsAre("ranks call broadcast of 128 Float, root 0 and broadcast of 127 Float, "
                          "root 0",
                          HasSubstr("root 0 and broadcast of 1 Float, root 1")));
}

// It does not write either.
TEST_F(ModelNcclTest, AbortEndsAKernelThatWaitsForAPeer) {
  Broadcast(0, kElements);
  comms_[0].reset();
  Current(0).synchronize();
  memory_[0].cpu();
  EXPECT_THAT(gpus().failures(), IsEmpty());
}

TEST_F(ModelNcclTest, AbortsHungKernel) {
  gpus().Hang(1);
  for (int rank = 0; rank < 2; ++rank) Broadcast(rank, kElements);
  const c10::Event event = Recorded(Current(0));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(event.query());
  comms_[0].reset();
  Current(0).synchronize();
  EXPECT_TRUE(event.query());
}

}  // namespace
}  // namespace distro::worker
