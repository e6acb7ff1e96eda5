// The integer inverse transform on the golden vote blocks, bit for bit: the reference and every
// vector width.
#include <optional>

#include "kernels/basis.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/reference.h"
#include "tests/kernels/backends.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

struct TransformCase {
  std::string name;
  std::function<void(const BlockVotes&, int32_t*)> transform;
};

std::vector<TransformCase> Transforms() {
  std::vector<TransformCase> cases = {{"reference", reference::InverseInteger}};
  for (const VectorKernels& kernels : SupportedVectorKernels()) {
    cases.push_back({kernels.name, [exact = kernels.exact](const BlockVotes& votes, int32_t* u) {
                       alignas(64) int32_t scratch[2 * kBlockElements];
                       exact->inverse_integer(votes, scratch, u);
                     }});
  }
  cases.push_back({"cuda_emulated", testing::EmulatedInverseInteger});
  return cases;
}

using GoldenData = std::map<std::string, testing::GoldenArray>;

VotesView ViewOf(GoldenData& data) {
  return {data["vote_offset"].As<uint32_t>(), data["vote_index"].As<uint16_t>(),
          data["vote_value"].As<int16_t>()};
}

class GoldenIdctTest : public ::testing::TestWithParam<TransformCase> {
 protected:
  GoldenData data_ = testing::LoadGolden("idct");
  // u of every block.
  std::vector<int32_t> Transform() {
    const VotesView votes = ViewOf(data_);
    const int64_t blocks = static_cast<int64_t>(votes.offsets.size()) - 1;
    std::vector<int32_t> all;
    for (int64_t b = 0; b < blocks; ++b) {
      const std::optional<BlockVotes> block = VotesOfBlock(votes, b);
      EXPECT_TRUE(block.has_value());
      alignas(64) int32_t u[kBlockElements];
      GetParam().transform(*block, u);
      all.insert(all.end(), u, u + kBlockElements);
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(All, GoldenIdctTest, ::testing::ValuesIn(Transforms()),
                         [](const auto& c) { return c.param.name; });

TEST_P(GoldenIdctTest, DirectionsAndChecksumsOfEveryBlock) {
  const std::vector<int32_t> u = Transform();
  const auto packed = data_["direction_2bit"].As<uint8_t>();
  const auto checksums = data_["u_checksum"].As<uint64_t>();
  ASSERT_EQ(u.size(), checksums.size() * kBlockElements);
  for (size_t b = 0; b < checksums.size(); ++b) {
    uint64_t checksum = 0;
    for (size_t s = 0; s < kBlockElements; ++s) {
      const int32_t value = u[b * kBlockElements + s];
      const int code = packed[b * 1024 + s / 4] >> (2 * (s % 4)) & 3;
      ASSERT_EQ((value > 0) - (value < 0), code == 3 ? -1 : code)
          << "block " << b << " sample " << s;
      checksum += (2 * s + 1) * static_cast<uint64_t>(int64_t{value});
    }
    EXPECT_EQ(checksum, checksums[b]) << "block " << b;
  }
}

TEST_P(GoldenIdctTest, WholeSumsOfSomeBlocks) {
  const std::vector<int32_t> u = Transform();
  const auto blocks = data_["u_block"].As<uint16_t>();
  const auto want = data_["u"].As<int32_t>();
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(absl::MakeConstSpan(u).subspan(blocks[i] * kBlockElements, kBlockElements),
              want.subspan(i * kBlockElements, kBlockElements));
  }
}

class GoldenDirectionTest : public testing::BackendTest {};
INSTANTIATE_TEST_SUITE_P(All, GoldenDirectionTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

// Through the public operation: from parameters 0 with eta 1 the result is minus the direction.
TEST_P(GoldenDirectionTest, ApplyTakesTheseDirections) {
  GoldenData data = testing::LoadGolden("idct");
  const auto packed = data["direction_2bit"].As<uint8_t>();
  const VotesView votes = ViewOf(data);
  const int64_t blocks = static_cast<int64_t>(votes.offsets.size()) - 1;
  const MatrixShape matrix = {.rows = 64 * blocks, .cols = 64, .elements = 4096 * blocks};
  std::vector<float> p(matrix.elements, 0.0f);
  ASSERT_TRUE(backend_
                  ->ApplyVotes(matrix, {.first = 0, .count = blocks},
                               {.eta = 1.0f, .eta_lambda = 0.0f}, votes, absl::MakeSpan(p))
                  .ok());
  for (size_t i = 0; i < p.size(); ++i) {
    const int code = packed[i / 4] >> (2 * (i % 4)) & 3;
    ASSERT_EQ(p[i], code == 3 ? 1.0f : -static_cast<float>(code)) << i;
  }
}

TEST(GoldenBasisTest, IsTheConstantTable) {
  std::map<std::string, testing::GoldenArray> data = testing::LoadGolden("idct");
  EXPECT_EQ(data["basis_q13"].As<int16_t>(), absl::MakeConstSpan(kBasisQ13.at[0], 4096));
}

}  // namespace
}  // namespace distro
