// The GPU's fused pass, run on the CPU.
#include "tests/kernels/compressed.h"

namespace distro {
namespace {

using testing::Compressed;
using testing::ExpectSame;
using testing::kOptions;
using testing::RunCompress;
using testing::ShapeCase;

TEST(FeedbackCompressTest, IsFeedbackThenCompressToTheBit) {
  const std::unique_ptr<Backend> backend = testing::MakeEmulatedCudaBackend();
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(testing::Describe(shape));
    const int64_t n = shape.matrix.elements;
    const std::vector<float> g = testing::RandomFloats(1, n);
    Compressed separate(shape, testing::RandomFloats(2, n));
    RunCompress(*backend, shape, g, separate);
    Compressed fused = separate;
    const Compressed used = separate;
    backend->Feedback(shape.matrix, shape.blocks, kOptions.k, used.positions, used.values,
                      absl::MakeSpan(separate.momentum));
    RunCompress(*backend, shape, g, separate);
    // In place: what was pending is replaced by what is.
    testing::EmulatedFeedbackCompress(
        shape.matrix, shape.blocks, kOptions, kOptions.k, fused.positions, fused.values, g,
        absl::MakeSpan(fused.momentum), absl::MakeSpan(fused.positions),
        absl::MakeSpan(fused.values));
    ExpectSame(fused, separate);
  }
}

}  // namespace
}  // namespace distro
