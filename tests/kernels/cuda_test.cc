// The GPU gives the same bits as its emulation on the CPU, in every run.
#include "tests/kernels/gpu_deltas.h"
#include "tests/kernels/signs_compressed.h"

namespace distro {
namespace {

using testing::Compressed;
using testing::ExpectSame;
using testing::kOptions;
using testing::RunCompress;
using testing::ShapeCase;

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_ == nullptr) GTEST_SKIP() << "needs a GPU, and a build with DISTRO_CUDA";
  }
  const std::unique_ptr<testing::WaitingBackend> cuda_ = testing::CudaOnThisMachine();
  const std::unique_ptr<testing::WaitingBackend> emulated_ = testing::MakeEmulatedCudaBackend();
};

TEST_F(CudaTest, CompressFeedbackAndSquaresHaveTheEmulationsBits) {
  std::vector<ShapeCase> shapes = testing::Shapes();
  shapes.push_back(testing::Matrix(1000, 1100));
  for (const ShapeCase& shape : shapes) {
    SCOPED_TRACE(testing::Describe(shape));
    const int64_t n = shape.matrix.elements;
    const std::vector<float> g = testing::RandomFloats(1, n);
    Compressed got(shape, testing::RandomFloats(2, n)), want = got;
    for (int step = 0; step < 3; ++step) {
      RunCompress(*cuda_, shape, g, got);
      RunCompress(*emulated_, shape, g, want);
      ExpectSame(got, want);
      cuda_->FeedbackSigns(shape.matrix, shape.blocks, kOptions.k, got.positions, got.values,
                           absl::MakeSpan(got.momentum));
      emulated_->FeedbackSigns(shape.matrix, shape.blocks, kOptions.k, want.positions, want.values,
                               absl::MakeSpan(want.momentum));
      ExpectSame(got, want);
    }
    EXPECT_EQ(cuda_->SumOfSquares(shape.matrix, g), emulated_->SumOfSquares(shape.matrix, g));
  }
}

TEST_F(CudaTest, RepeatsBits) {
  const ShapeCase shape = testing::Matrix(2048, 2048);
  const std::vector<float> g = testing::RandomFloats(1, shape.matrix.elements);
  Compressed first(shape, testing::RandomFloats(2, shape.matrix.elements)), second = first;
  RunCompress(*cuda_, shape, g, first);
  RunCompress(*cuda_, shape, g, second);
  ExpectSame(second, first);
}

// The buffer, the record, what leaves the buffer again, and the buffer of the next round.
TEST_F(CudaTest, DeltasHaveTheEmulationsBits) {
  testing::GpuDeltas real(testing::GpuOnThisMachine());
  testing::GpuDeltas emulated(testing::MakeEmulatedGpu());
  std::vector<ShapeCase> shapes = testing::Shapes();
  shapes.push_back(testing::Matrix(1000, 1100));
  for (const ShapeCase& shape : shapes) {
    for (const bool as_dct : {false, true}) {
      for (const int k : {1, 32, 65, 4096}) {
        testing::Round round = testing::RandomRound(shape, 1);
        for (int step = 0; step < 2; ++step)
          round.error = testing::ExpectSameRound(real, emulated, shape, round, as_dct, k);
      }
    }
  }
}

}  // namespace
}  // namespace distro
