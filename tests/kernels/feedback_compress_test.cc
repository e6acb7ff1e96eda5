// The GPU's fused pass, run on the CPU.
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::ShapeCase;

constexpr CompressOptions kOptions = {.beta = 0.999f, .eta = 0.25f, .gradient_scale = 0.5f, .k = 6};

struct Compressed {
  explicit Compressed(const ShapeCase& shape, std::vector<float> start)
      : momentum(std::move(start)),
        positions(shape.blocks.count * kOptions.k),
        values(shape.blocks.count * kOptions.k) {}
  std::vector<float> momentum;
  std::vector<uint16_t> positions;
  std::vector<float> values;
};

void ExpectSame(const Compressed& got, const Compressed& want) {
  EXPECT_EQ(testing::Bits(got.momentum), testing::Bits(want.momentum));
  EXPECT_EQ(got.positions, want.positions);
  EXPECT_EQ(testing::Bits(got.values), testing::Bits(want.values));
}

void RunCompress(Backend& backend, const ShapeCase& shape, const std::vector<float>& gradient,
                 Compressed& c) {
  backend.Compress(shape.matrix, shape.blocks, kOptions, gradient, absl::MakeSpan(c.momentum),
                   absl::MakeSpan(c.positions), absl::MakeSpan(c.values));
}

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
