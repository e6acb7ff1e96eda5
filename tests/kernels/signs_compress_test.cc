// Compress and Feedback, one body over all backends.
#include <algorithm>
#include <map>
#include <numeric>

#include "kernels/cpu/reference.h"
#include "kernels/forward_transform.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::GuardedFloats;
using testing::ShapeCase;

constexpr float kEps = 0x1p-24f;  // unit roundoff of f32

// Of the two axes. The momentum itself has three roundings, each at most eps * (|beta m| +
// |eta g s|) <= eps * 2 * (beta||m|| + eta*s*||g||).
constexpr double kTransformRoundings = 2 * kForwardTransformRoundingsUnfused;
constexpr double kDenormal = 4096 * 0x1p-149;  // where products fall below the smallest float

constexpr SignCompressOptions kOptions = {
    .beta = 0.999f, .eta = 0.25f, .gradient_scale = 0.5f, .k = 4};

struct Compressed {
  std::vector<float> momentum;
  std::vector<uint16_t> positions;
  std::vector<float> values;
};

Compressed RunCompress(testing::WaitingBackend& backend, const ShapeCase& shape, int k,
                       const std::vector<float>& gradient, const std::vector<float>& momentum) {
  SignCompressOptions options = kOptions;
  options.k = k;
  GuardedFloats g(gradient), m(momentum),
      values(std::vector<float>(shape.blocks.count * k, testing::kNan));
  std::vector<uint16_t> positions(shape.blocks.count * k + 2, 0xFFFF);
  backend.CompressSigns(shape.matrix, shape.blocks, options, g.span(), m.span(),
                        absl::MakeSpan(positions).subspan(1, shape.blocks.count * k),
                        values.span());
  EXPECT_TRUE(g.Intact() && m.Intact() && values.Intact()) << testing::Describe(shape);
  EXPECT_TRUE(positions.front() == 0xFFFF && positions.back() == 0xFFFF);
  EXPECT_EQ(testing::Bits(g.span()), testing::Bits(gradient));
  return {{m.span().begin(), m.span().end()},
          {positions.begin() + 1, positions.end() - 1},
          {values.span().begin(), values.span().end()}};
}

// Positions by magnitude, ties to the lower one.
std::vector<uint16_t> BestPositions(absl::Span<const float> c, int k) {
  std::vector<uint16_t> order(c.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint16_t a, uint16_t b) { return std::abs(c[a]) > std::abs(c[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

class CompressTest : public testing::BackendTest {
 protected:
};
INSTANTIATE_TEST_SUITE_P(All, CompressTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

TEST_P(CompressTest, MomentumAndAllCoefficientsAgreeWithTheReference) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(testing::Describe(shape));
    const int64_t n = shape.matrix.elements;
    const std::vector<float> g =
        testing::OnlyInRange(shape, testing::RandomFloats(1, n), testing::kNan);
    const std::vector<float> m =
        testing::OnlyInRange(shape, testing::RandomFloats(2, n), testing::kNan);
    const Compressed got = RunCompress(*backend_, shape, 4096, g, m);
    const Compressed want = RunCompress(*reference_, shape, 4096, g, m);
    for (int64_t i = 0; i < n; ++i) {
      if (testing::InRange(shape, i)) {
        ASSERT_NEAR(got.momentum[i], want.momentum[i], 3 * kEps * 2)
            << i;  // |beta m| + |eta g s| < 1.2
      } else {
        ASSERT_TRUE(testing::SameBits(got.momentum[i], m[i])) << i;
      }
    }
    ASSERT_EQ(got.positions, want.positions);  // 0..4095 in every block
    for (int64_t b = 0; b < shape.blocks.count; ++b) {
      const auto block = absl::MakeConstSpan(want.values).subspan(b * 4096, 4096);
      const double norm = testing::Norm(block);  // of the samples too: the transform is orthonormal
      const double tolerance = (kTransformRoundings + 6) * kEps * norm + 6 * kEps * 64;
      for (int i = 0; i < 4096; ++i)
        ASSERT_NEAR(got.values[b * 4096 + i], block[i], tolerance) << b << " " << i;
    }
  }
}

// More tensors than a GPU takes in one launch, with and without whole blocks and edges.
TEST_P(CompressTest, TensorsOfOneCallAreAsInCallsOfTheirOwn) {
  std::vector<ShapeCase> shapes;
  for (int i = 0; i < 6; ++i) {
    for (const ShapeCase& shape : testing::Shapes()) shapes.push_back(shape);
  }
  std::vector<std::vector<float>> gradients;
  std::vector<Compressed> want, got;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t n = shapes[i].matrix.elements, kept = shapes[i].blocks.count * kOptions.k;
    gradients.push_back(testing::RandomFloats(2 * i, n));
    const std::vector<float> momentum = testing::RandomFloats(2 * i + 1, n);
    want.push_back(RunCompress(*backend_, shapes[i], kOptions.k, gradients[i], momentum));
    got.push_back({momentum, std::vector<uint16_t>(kept), std::vector<float>(kept)});
  }
  std::vector<TensorMomentum> tensors;
  for (size_t i = 0; i < shapes.size(); ++i) {
    tensors.push_back({.matrix = shapes[i].matrix,
                       .blocks = shapes[i].blocks,
                       .gradient = gradients[i],
                       .momentum = absl::MakeSpan(got[i].momentum),
                       .positions = absl::MakeSpan(got[i].positions),
                       .values = absl::MakeSpan(got[i].values)});
  }
  backend_->CompressSigns(kOptions, tensors);
  for (size_t i = 0; i < shapes.size(); ++i) {
    SCOPED_TRACE(testing::Describe(shapes[i]));
    EXPECT_EQ(testing::Bits(got[i].momentum), testing::Bits(want[i].momentum));
    EXPECT_EQ(got[i].positions, want[i].positions);
    EXPECT_EQ(testing::Bits(got[i].values), testing::Bits(want[i].values));
  }
}

TEST_P(CompressTest, SelectsExactlyTheLargestOfItsOwnCoefficients) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(testing::Describe(shape));
    const std::vector<float> g = testing::RandomFloats(3, shape.matrix.elements);
    const std::vector<float> m = testing::RandomFloats(4, shape.matrix.elements);
    const Compressed all = RunCompress(*backend_, shape, 4096, g, m);
    for (int k : {1, 2, 4, 8, 31, 32, 63, 64, 65, 500, 4095}) {
      const Compressed got = RunCompress(*backend_, shape, k, g, m);
      EXPECT_EQ(got.momentum, all.momentum);
      for (int64_t b = 0; b < shape.blocks.count; ++b) {
        const auto c = absl::MakeConstSpan(all.values).subspan(b * 4096, 4096);
        const std::vector<uint16_t> best = BestPositions(c, k);
        for (int i = 0; i < k; ++i) {
          ASSERT_EQ(got.positions[b * k + i], best[i]) << "k " << k << " block " << b;
          ASSERT_TRUE(testing::SameBits(got.values[b * k + i], c[best[i]]));
        }
      }
    }
  }
}

TEST_P(CompressTest, ChoosesAsTheReferenceWhereItIsNotCloserThanTheError) {
  const ShapeCase shape = testing::Matrix(640, 640);
  const std::vector<float> g = testing::RandomFloats(5, shape.matrix.elements);
  const std::vector<float> m = testing::RandomFloats(6, shape.matrix.elements);
  const Compressed all = RunCompress(*reference_, shape, 4096, g, m);
  const int k = 32;
  const Compressed got = RunCompress(*backend_, shape, k, g, m);
  for (int64_t b = 0; b < shape.blocks.count; ++b) {
    const auto c = absl::MakeConstSpan(all.values).subspan(b * 4096, 4096);
    const double tolerance = 2 * (kTransformRoundings + 6) * kEps * testing::Norm(c);
    const float kth = std::abs(c[BestPositions(c, k).front()]);
    float least = kth;
    for (uint16_t position : BestPositions(c, k)) least = std::min(least, std::abs(c[position]));
    for (int i = 0; i < k; ++i) EXPECT_GE(std::abs(c[got.positions[b * k + i]]), least - tolerance);
  }
}

TEST_P(CompressTest, ZerosGiveTheFirstPositionsAndZeroValues) {
  const ShapeCase shape = testing::Matrix(70, 130);
  const std::vector<float> zeros(shape.matrix.elements, 0.0f);
  for (int k : {1, 4, 64, 65, 4096}) {
    const Compressed got = RunCompress(*backend_, shape, k, zeros, zeros);
    for (int64_t i = 0; i < shape.blocks.count * k; ++i) {
      ASSERT_EQ(got.positions[i], i % k);
      ASSERT_EQ(got.values[i], 0.0f);
    }
  }
}

// A block with one non-zero row has coefficients that repeat: the same magnitude at many positions.
TEST_P(CompressTest, GivesConstantBlockOneCoefficient) {
  const ShapeCase shape = testing::Matrix(64, 64);
  const std::vector<float> m(4096, 1.0f);
  const Compressed got = RunCompress(*backend_, shape, 1, std::vector<float>(4096, 0.0f), m);
  EXPECT_EQ(got.positions[0], 0);
  EXPECT_NEAR(got.values[0], 64 * 0.999, kTransformRoundings * kEps * 64);
}

TEST_P(CompressTest, KeepsDenormals) {
  const ShapeCase shape = testing::Matrix(64, 64);
  std::vector<float> m = testing::RandomFloats(7, 4096);
  for (float& x : m) x *= 0x1p-130f;
  const std::vector<float> zeros(4096, 0.0f);
  const Compressed got = RunCompress(*backend_, shape, 4096, zeros, m);
  const Compressed want = RunCompress(*reference_, shape, 4096, zeros, m);
  const double norm = testing::Norm(want.values);
  EXPECT_GT(norm, 0);
  for (int i = 0; i < 4096; ++i) {
    ASSERT_NEAR(got.values[i], want.values[i], kTransformRoundings * kEps * norm + kDenormal);
    ASSERT_NEAR(got.momentum[i], want.momentum[i], 0x1p-149);
  }
}

TEST_P(CompressTest, FeedbackSubtractsTheInverseOfWhatWasChosen) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(testing::Describe(shape));
    const int64_t n = shape.matrix.elements;
    const std::vector<float> m =
        testing::OnlyInRange(shape, testing::RandomFloats(8, n), testing::kNan);
    for (int k : {1, 4, 32, 4096}) {
      const Compressed c = RunCompress(*reference_, shape, k, testing::RandomFloats(9, n), m);
      GuardedFloats got(m), want(m);
      backend_->FeedbackSigns(shape.matrix, shape.blocks, k, c.positions, c.values, got.span());
      reference_->FeedbackSigns(shape.matrix, shape.blocks, k, c.positions, c.values, want.span());
      ASSERT_TRUE(got.Intact());
      // ||c|| <= ||m|| < 64; an inverse axis has at most 64 chained multiply-adds and the basis'
      // own rounding.
      const double tolerance = (2 * 65 + 2) * kEps * 64;
      for (int64_t i = 0; i < n; ++i) {
        if (testing::InRange(shape, i)) {
          ASSERT_NEAR(got.span()[i], want.span()[i], tolerance) << i;
        } else {
          ASSERT_TRUE(testing::SameBits(got.span()[i], m[i])) << i;
        }
      }
    }
  }
}

// All 4096 coefficients are the whole block: nothing remains, on edge blocks too.
TEST_P(CompressTest, FeedbackOfEverythingLeavesNothing) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(testing::Describe(shape));
    const int64_t n = shape.matrix.elements;
    const std::vector<float> zeros(n, 0.0f);
    Compressed c = RunCompress(*backend_, shape, 4096, testing::RandomFloats(10, n), zeros);
    backend_->FeedbackSigns(shape.matrix, shape.blocks, 4096, c.positions, c.values,
                            absl::MakeSpan(c.momentum));
    // ||m|| < 64 * eta * scale = 8, there and back.
    for (float left : c.momentum) ASSERT_NEAR(left, 0, (kTransformRoundings + 132) * kEps * 8);
  }
}

}  // namespace
}  // namespace distro
