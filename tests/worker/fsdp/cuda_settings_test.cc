// What a build for GPUs sets, seen without one.
#include "gtest/gtest.h"
#include "worker/fsdp/cuda_device.h"
#include "worker/torch/cuda_torch.h"

namespace distro::worker {
namespace {

// As TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 sets it.
TEST(CudaSettingsTest, ProductsOfF32AreNotRoundedToTf32) {
  at::globalContext().setAllowTF32CuBLAS(true);
  SetUpCublas();
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
}

}  // namespace
}  // namespace distro::worker
