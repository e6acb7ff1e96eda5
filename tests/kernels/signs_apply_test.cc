// Apply, bit for bit, one body over all backends.
#include <algorithm>
#include <array>

#include "common/method/signs/votes.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/reference.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::GuardedFloats;
using testing::ShapeCase;

// One block without votes.
Votes NoVotes() {
  Votes votes;
  votes.offsets = {0, 0};
  return votes;
}

constexpr SignApplyOptions kOptions = {.eta = 4e-4f, .eta_lambda = 4e-5f};

// `entries` distinct random positions a block (fewer in every third block, none in every fifth),
// |V| at most `largest`.
Votes RandomVotes(uint64_t seed, int64_t blocks, int entries, int largest) {
  Votes votes;
  for (int64_t b = 0; b < blocks; ++b) {
    std::array<bool, 4096> taken = {};
    const int wanted = b % 5 == 4 ? 0 : (b % 3 == 2 ? entries / 2 + 1 : entries);
    for (int i = 0; i < wanted; ++i) taken[SplitMix64(seed, b * 5000 + i) % 4096] = true;
    int budget = kMaxVotesPerBlock;
    for (int position = 0; position < 4096; ++position) {
      if (!taken[position]) continue;
      const uint64_t random = SplitMix64(seed + 1, b * 5000 + position);
      const int magnitude =
          std::min(budget, 1 + static_cast<int>(random % static_cast<uint64_t>(largest)));
      if (magnitude == 0) break;
      budget -= magnitude;
      votes.positions.push_back(static_cast<uint16_t>(position));
      votes.values.push_back(static_cast<int16_t>(random >> 63 ? magnitude : -magnitude));
    }
    votes.offsets.push_back(static_cast<uint32_t>(votes.positions.size()));
  }
  return votes;
}

VotesView View(const Votes& votes) { return {votes.offsets, votes.positions, votes.values}; }

class ApplyTest : public testing::BackendTest {
 protected:
  void ExpectAsReference(const ShapeCase& shape, const Votes& votes, const std::vector<float>& p,
                         const SignApplyOptions& options = kOptions) {
    GuardedFloats got(p), want(p);
    ASSERT_TRUE(
        backend_->ApplyVotes(shape.matrix, shape.blocks, options, View(votes), got.span()).ok());
    ASSERT_TRUE(
        reference_->ApplyVotes(shape.matrix, shape.blocks, options, View(votes), want.span()).ok());
    EXPECT_TRUE(got.Intact());
    EXPECT_EQ(testing::Bits(got.span()), testing::Bits(want.span()));
  }
};
INSTANTIATE_TEST_SUITE_P(All, ApplyTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

TEST_P(ApplyTest, MatchesReferenceForShapesAndVotes) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(testing::Describe(shape));
    const std::vector<float> p =
        testing::OnlyInRange(shape, testing::RandomFloats(1, shape.matrix.elements), testing::kNan);
    for (const auto& [entries, largest] :
         {std::pair{1, 1}, {4, 1}, {32, 9}, {128, 3}, {900, 40}, {4096, 32767}}) {
      ExpectAsReference(shape, RandomVotes(entries, shape.blocks.count, entries, largest), p);
    }
  }
}

// Signs alone would hide an error in the last bits of the sums.
TEST(InverseIntegerTest, SumsAreTheReferencesAtEveryWidth) {
  for (const auto& [entries, largest] :
       {std::pair{1, 1}, {8, 100}, {22, 1448}, {128, 3}, {2000, 16}, {4096, 32767}}) {
    const Votes votes = RandomVotes(entries + 1, 20, entries, largest);
    for (int b = 0; b < 20; ++b) {
      const BlockVotes block = VotesOfBlock(View(votes), b).value();
      std::vector<int32_t> want(kBlockElements);
      reference::InverseInteger(block, want.data());
      for (const VectorKernels& kernels : SupportedVectorKernels()) {
        alignas(64) int32_t scratch[2 * kBlockElements], u[kBlockElements];
        kernels.exact->inverse_integer(block, scratch, u);
        ASSERT_EQ(absl::MakeConstSpan(u), absl::MakeConstSpan(want))
            << kernels.name << " block " << b;
      }
      std::vector<int32_t> emulated(kBlockElements);
      testing::EmulatedInverseInteger(block, emulated.data());
      ASSERT_EQ(emulated, want) << "cuda_emulated block " << b;
    }
  }
}

TEST_P(ApplyTest, ExtremeVotesDoNotOverflow) {
  const ShapeCase shape = testing::Matrix(64, 64);
  const std::vector<float> p = testing::RandomFloats(1, 4096);
  for (int position : {0, 1, 63, 64, 65, 2080, 4095}) {
    for (int value : {32767, -32767, 1, -1}) {
      Votes votes;
      votes.positions = {static_cast<uint16_t>(position)};
      votes.values = {static_cast<int16_t>(value)};
      votes.offsets = {0, 1};
      ExpectAsReference(shape, votes, p);
    }
  }
}

TEST_P(ApplyTest, SpecialParametersAndOptions) {
  const ShapeCase shape = testing::Matrix(64, 64);
  std::vector<float> p = testing::RandomFloats(1, 4096);
  const float specials[] = {0.0f,  -0.0f,  0x1p-149f, -0x1p-149f, 0x1p-126f,
                            3e38f, -3e38f, 4e-4f,     -4e-4f};
  for (size_t i = 0; i < p.size(); ++i) {
    if (i % 2 == 0) p[i] = specials[i / 2 % std::size(specials)];
    if (i % 7 == 0) p[i] *= 0x1p-140f;
  }
  const Votes votes = RandomVotes(5, 1, 20, 3);
  for (const SignApplyOptions& options :
       {SignApplyOptions{4e-4f, 0.0f}, {0.0f, 0.0f}, {0x1p-149f, 0.3f}, {1e30f, 1.0f}}) {
    ExpectAsReference(shape, votes, p, options);
    ExpectAsReference(shape, NoVotes(), p, options);
  }
}

TEST_P(ApplyTest, OnlyDecaysWithoutVotes) {
  const ShapeCase shape = testing::Vector(100);
  std::vector<float> p = testing::RandomFloats(1, 100);
  p[3] = -0.0f;
  const Votes none = NoVotes();
  GuardedFloats got(p);
  ASSERT_TRUE(backend_
                  ->ApplyVotes(shape.matrix, shape.blocks, {.eta = 1.0f, .eta_lambda = 0.0f},
                               View(none), got.span())
                  .ok());
  EXPECT_TRUE(got.span()[3] == 0);
  got.span()[3] = p[3];
  EXPECT_EQ(testing::Bits(got.span()), testing::Bits(p));
}

// One positive vote at position 0 is a constant positive direction.
TEST_P(ApplyTest, StepsAgainstDirection) {
  const ShapeCase shape = testing::Matrix(64, 64);
  Votes votes;
  votes.positions = {0};
  votes.values = {1};
  votes.offsets = {0, 1};
  std::vector<float> p(4096, 1.0f);
  ASSERT_TRUE(backend_
                  ->ApplyVotes(shape.matrix, shape.blocks, {.eta = 0.25f, .eta_lambda = 0.5f},
                               View(votes), absl::MakeSpan(p))
                  .ok());
  EXPECT_EQ(p, std::vector<float>(4096, 0.25f));
}

TEST_P(ApplyTest, OffsetsNeedNotStartAtZero) {
  const ShapeCase shape = testing::Matrix(128, 128);
  Votes votes = RandomVotes(3, 4, 50, 5);
  GuardedFloats got(testing::RandomFloats(1, shape.matrix.elements)),
      want(testing::RandomFloats(1, shape.matrix.elements));
  ASSERT_TRUE(
      backend_->ApplyVotes(shape.matrix, shape.blocks, kOptions, View(votes), want.span()).ok());
  for (int half = 0; half < 2; ++half) {
    const uint32_t begin = votes.offsets[2 * half], end = votes.offsets[2 * half + 2];
    const VotesView part = {absl::MakeConstSpan(votes.offsets).subspan(2 * half, 3),
                            absl::MakeConstSpan(votes.positions).subspan(begin, end - begin),
                            absl::MakeConstSpan(votes.values).subspan(begin, end - begin)};
    ASSERT_TRUE(
        backend_
            ->ApplyVotes(shape.matrix, {.first = 2 * half, .count = 2}, kOptions, part, got.span())
            .ok());
  }
  EXPECT_EQ(testing::Bits(got.span()), testing::Bits(want.span()));
}

TEST_P(ApplyTest, SumOfMagnitudesAboveTheLimitIsDataLoss) {
  const ShapeCase shape = testing::Matrix(64, 128);
  std::vector<float> p(shape.matrix.elements, 1.0f);
  const auto apply = [&](std::vector<uint16_t> positions, std::vector<int16_t> values) {
    const std::vector<uint32_t> offsets = {0, 0, static_cast<uint32_t>(positions.size())};
    return backend_
        ->ApplyVotes(shape.matrix, shape.blocks, kOptions, {offsets, positions, values},
                     absl::MakeSpan(p))
        .code();
  };
  EXPECT_EQ(apply({7, 8}, {32766, -1}), absl::StatusCode::kOk);
  EXPECT_EQ(apply({7, 8}, {32766, -2}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(apply({7}, {-32768}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(apply({8, 7}, {1, 1}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(apply({7, 7}, {1, 1}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(apply({4096}, {1}), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace distro
