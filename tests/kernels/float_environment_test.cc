// The exact operations give the same bits on a thread with a different floating-point control word
// (MXCSR), and restore that word.
#include <immintrin.h>

#include "kernels/deltas_view.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kRoundUp = 0x4000,
                   kRoundDown = 0x2000;
constexpr unsigned kStatusFlags = 0x3F;

// Sets the control word for a scope; `seen` receives it at the end.
class ControlWord {
 public:
  explicit ControlWord(unsigned bits) : before_(_mm_getcsr()) { _mm_setcsr(before_ | bits); }
  ~ControlWord() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
};

class FloatEnvironmentTest : public testing::BackendTest {
 protected:
  // Calls `body` under several control words and expects each time the bits that it gives under the
  // default one.
  template <typename Body>
  void ExpectSameBits(const Body& body) {
    const std::vector<uint32_t> want = testing::Bits(body());
    for (unsigned bits :
         {kFlushToZero | kDenormalsAreZero | kRoundUp, kRoundDown, kFlushToZero, kRoundUp}) {
      std::vector<float> got;
      unsigned before, after;
      {
        const ControlWord word(bits);
        before = _mm_getcsr();
        got = body();
        after = _mm_getcsr();
      }
      EXPECT_EQ(testing::Bits(got), want) << "MXCSR " << bits;
      EXPECT_EQ(before & ~kStatusFlags, after & ~kStatusFlags);
    }
  }

  // Half of them denormal.
  static std::vector<float> Parameters() {
    std::vector<float> p = testing::RandomFloats(1, 4096);
    for (size_t i = 0; i < p.size(); i += 2) p[i] *= 0x1p-128f;
    return p;
  }
};
INSTANTIATE_TEST_SUITE_P(All, FloatEnvironmentTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

TEST_P(FloatEnvironmentTest, ApplyDeltasIsIndependentOfTheCallersControlWord) {
  const testing::ShapeCase shape = testing::Matrix(64, 64);
  const DeltaResult result = {.offsets = {0, 3},
                              .positions = {1, 700, 2000},
                              .signs = {1, -1, 1},
                              .levels = {0, 3, 6},
                              .codes = {100}};
  const std::vector<float> before = Parameters();
  for (const bool as_dct : {false, true}) {
    ExpectSameBits([&] {
      std::vector<float> p = before;
      EXPECT_TRUE(backend_
                      ->ApplyDeltas(shape.matrix, shape.blocks,
                                    {.alpha = 0x1.8p-70f, .as_dct = as_dct},
                                    ViewOf(result, shape.blocks), absl::MakeSpan(p))
                      .ok());
      return p;
    });
  }
}

TEST_P(FloatEnvironmentTest, ApplyIsIndependentOfTheCallersControlWord) {
  const testing::ShapeCase shape = testing::Matrix(64, 64);
  const std::vector<uint32_t> offsets = {0, 2};
  const std::vector<uint16_t> positions = {1, 2000};
  const std::vector<int16_t> values = {3, -5};
  for (const SignApplyOptions& options : {SignApplyOptions{4e-4f, 3e-5f}, {0x1p-140f, 0.25f}}) {
    const std::vector<float> before =
        Parameters();  // made outside: making them is ordinary arithmetic
    ExpectSameBits([&] {
      std::vector<float> p = before;
      EXPECT_TRUE(backend_
                      ->ApplyVotes(shape.matrix, shape.blocks, options,
                                   {offsets, positions, values}, absl::MakeSpan(p))
                      .ok());
      return p;
    });
  }
}

TEST_P(FloatEnvironmentTest, LookaheadIsIndependentOfTheCallersControlWord) {
  std::vector<float> m = testing::RandomFloats(2, 4096);
  for (size_t i = 0; i < m.size(); i += 3) m[i] *= 0x1p-130f;
  const std::vector<float> p = Parameters();
  for (float eta : {4e-4f, 0x1p-140f}) {
    ExpectSameBits([&] {
      std::vector<float> out(4096);
      backend_->Lookahead(eta, p, m, absl::MakeSpan(out));
      return out;
    });
  }
}

// Shows that the test can fail: ordinary arithmetic gives other bits under these control words.
TEST(FloatEnvironmentTestItself, ControlWordsChangeOrdinaryArithmetic) {
  volatile float denormal = 0x1p-140f, third = 3.0f;
  const float want_sum = denormal + denormal, want_quotient = 1.0f / third;
  float sum, quotient;
  {
    const ControlWord word(kFlushToZero | kDenormalsAreZero | kRoundDown);
    sum = denormal + denormal;
    quotient = 1.0f / third;
  }
  EXPECT_NE(sum, want_sum);
  EXPECT_NE(quotient, want_quotient);
}

}  // namespace
}  // namespace distro
