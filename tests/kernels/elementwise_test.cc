// Lookahead and StateHash, bit for bit, and SumOfSquares within its bound on a GPU, one body over
// all backends.
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::GuardedFloats;
using testing::ShapeCase;

class ElementwiseTest : public testing::BackendTest {
 protected:
};
INSTANTIATE_TEST_SUITE_P(All, ElementwiseTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

TEST_P(ElementwiseTest, LookaheadStepsAgainstTheSignOfTheMomentum) {
  const std::vector<float> p = {1, 1, 1, 1, 1, -0.0f, 0.0f, 0x1p-149f, 1};
  const std::vector<float> m = {2, -3, 0.0f, -0.0f, 0x1p-149f, 0, -0x1p-149f, 0, testing::kNan};
  std::vector<float> out(p.size());
  backend_->Lookahead(0.25f, p, m, absl::MakeSpan(out));
  EXPECT_EQ(testing::Bits(out),
            testing::Bits({0.75f, 1.25f, 1.0f, 1.0f, 0.75f, -0.0f, 0.25f, 0x1p-149f, 1.0f}));
}

TEST_P(ElementwiseTest, LookaheadOfEveryLengthStaysInItsBounds) {
  for (int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 1000}) {
    GuardedFloats p(testing::RandomFloats(1, n)), m(testing::RandomFloats(2, n)),
        out(testing::RandomFloats(3, n));
    GuardedFloats want(testing::RandomFloats(3, n));
    backend_->Lookahead(4e-4f, p.span(), m.span(), out.span());
    reference_->Lookahead(4e-4f, p.span(), m.span(), want.span());
    EXPECT_TRUE(p.Intact() && m.Intact() && out.Intact()) << n;
    EXPECT_EQ(testing::Bits(out.span()), testing::Bits(want.span())) << n;
  }
}

// Values from an implementation of the formula in Python integers.
TEST_P(ElementwiseTest, StateHashHasTheValuesOfItsFormula) {
  std::vector<float> quarters;
  for (int i = 0; i < 37; ++i) quarters.push_back(static_cast<float>(i) * 0.25f);
  EXPECT_EQ(backend_->StateHash(0, {0.0f}), 0xe220a8397b1dcdafu);
  EXPECT_EQ(backend_->StateHash(0, {1.0f, -2.5f, 0.0f, -0.0f}), 0x793026a4315adc7fu);
  EXPECT_EQ(backend_->StateHash(5, quarters), 0x3fe371bd2af53885u);
  EXPECT_EQ(backend_->StateHash((uint64_t{1} << 32) - 3, std::vector<float>(20, 1.0f)),
            0x383cef8f4f7aa3e5u);
}

TEST_P(ElementwiseTest, StateHashAddsUpOverPieces) {
  GuardedFloats p(testing::RandomFloats(1, 1000));
  const uint64_t whole = backend_->StateHash(7, p.span());
  for (size_t cut : {0, 1, 15, 16, 17, 500, 999, 1000}) {
    EXPECT_EQ(backend_->StateHash(7, p.span().subspan(0, cut)) +
                  backend_->StateHash(7 + cut, p.span().subspan(cut)),
              whole);
  }
  std::swap(p.span()[3], p.span()[4]);
  EXPECT_NE(backend_->StateHash(7, p.span()), whole);
}

// On CPU backends only: a GPU uses a different order within a block row.
TEST_P(ElementwiseTest, SumOfSquaresAddsInTheStatedOrder) {
  if (GetParam().name.starts_with("cuda")) GTEST_SKIP() << "another order; the next test is its";
  std::vector<ShapeCase> shapes = testing::Shapes();
  shapes.push_back(testing::Matrix(1100, 3));
  shapes.push_back(testing::Matrix(1024, 5));
  shapes.push_back(testing::Vector(100000));
  for (const ShapeCase& shape : shapes) {
    GuardedFloats g(testing::RandomFloats(2, shape.matrix.elements));
    EXPECT_EQ(backend_->SumOfSquares(shape.matrix, g.span()),
              reference_->SumOfSquares(shape.matrix, g.span()))
        << testing::Describe(shape);
    const std::vector<double> sums = backend_->RowSums(shape.matrix, g.span());
    EXPECT_EQ(sums, reference_->RowSums(shape.matrix, g.span())) << testing::Describe(shape);
  }
  // Rows of blocks are added apart: 1 + 2^-53 is lost within a row, 2^-53 * 2 survives as a row of
  // its own.
  std::vector<float> g(128, 0.0f);
  g[0] = 1;
  g[64] = g[65] = 0x1p-26f * 0x1.6a09e6p-1f;
  const double own_row = double{g[64]} * g[64] + double{g[65]} * g[65];
  EXPECT_EQ(backend_->SumOfSquares({.rows = 128, .cols = 1, .elements = 128}, g), 1 + own_row);
  EXPECT_EQ(backend_->SumOfSquares({.rows = 2, .cols = 64, .elements = 128}, g),
            1 + double{g[64]} * g[64] + double{g[65]} * g[65]);
}

// Squares are exact in f64. Whatever the order within a row of 64 * 2048 elements, an element
// passes fewer than 64 * 2048 additions.
TEST_P(ElementwiseTest, SumOfSquaresIsTheSumWithinItsRoundings) {
  for (const ShapeCase& shape : testing::Shapes()) {
    GuardedFloats g(testing::RandomFloats(2, shape.matrix.elements));
    const double want = reference_->SumOfSquares(shape.matrix, g.span());
    EXPECT_NEAR(backend_->SumOfSquares(shape.matrix, g.span()), want, 2 * 131072 * 0x1p-53 * want)
        << testing::Describe(shape);
  }
}

// A rank has a run of whole block rows; the total of all row sums must not depend on the sharding.
TEST_P(ElementwiseTest, SumOfSquaresOfABlockRowIsTheSameInEveryMatrix) {
  const int64_t cols = 300;
  const std::vector<float> g = testing::RandomFloats(3, 200 * cols);
  double rows = 0;
  for (int64_t row = 0; row < 200; row += 64) {
    const int64_t height = std::min<int64_t>(64, 200 - row);
    rows += backend_->SumOfSquares(testing::Matrix(height, cols).matrix,
                                   absl::MakeConstSpan(g).subspan(row * cols, height * cols));
  }
  EXPECT_EQ(backend_->SumOfSquares(testing::Matrix(200, cols).matrix, g), rows);
}

}  // namespace
}  // namespace distro
