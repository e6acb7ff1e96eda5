#include "common/method/signs/record_codec.h"

#include <cstring>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

uint128 GoldenRank(const testing::GoldenArray& ranks, int k, int row) {
  const auto words = ranks.As<uint64_t>();
  if (k != 8) return words[row];
  return words[2 * row] | (uint128{words[2 * row + 1]} << 64);
}

// By way of a record, which begins with the rank.
uint128 RankOfSubset(absl::Span<const uint16_t> positions) {
  const int k = static_cast<int>(positions.size());
  std::string body;
  EncodeRecords({.k = k,
                 .positions = {positions.begin(), positions.end()},
                 .signs = std::vector<int8_t>(k, 1)},
                &body);
  uint128 record = 0;
  std::memcpy(&record, body.data(), body.size());
  return record & ((uint128{1} << RankBits(k)) - 1);
}

void SubsetOfRank(uint128 rank, absl::Span<uint16_t> positions) {
  const int k = static_cast<int>(positions.size());
  const std::string body(reinterpret_cast<const char*>(&rank), RecordBodyBytes(1, k));
  std::vector<int8_t> signs(k);
  ASSERT_EQ(DecodeRecords(body, k, 0, 1, positions.data(), signs.data()), absl::OkStatus());
}

class GoldenRankTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(AllK, GoldenRankTest, ::testing::Values(1, 2, 4, 8));

TEST_P(GoldenRankTest, RanksAndSubsetsMatch) {
  const int k = GetParam();
  const auto golden = testing::LoadGolden("rank");
  const auto& subsets = golden.at("subset_k" + std::to_string(k));
  const auto& ranks = golden.at("rank_k" + std::to_string(k));
  ASSERT_GT(subsets.shape[0], 0);
  for (int row = 0; row < subsets.shape[0]; ++row) {
    const absl::Span<const uint16_t> subset = subsets.As<uint16_t>().subspan(row * k, k);
    const uint128 rank = GoldenRank(ranks, k, row);
    EXPECT_TRUE(RankOfSubset(subset) == rank) << "k " << k << " row " << row;
    std::vector<uint16_t> decoded(k);
    SubsetOfRank(rank, absl::MakeSpan(decoded));
    EXPECT_EQ(absl::MakeConstSpan(decoded), subset) << "row " << row;
  }
}

// C(c, k) by the addition rule.
std::vector<uint128> PascalColumn(int k) {
  std::vector<uint128> column(kBlockElements + 1, 1);
  for (int i = 1; i <= k; ++i) {
    uint128 sum = 0;
    for (uint128& value : column) {
      const uint128 above = value;
      value = sum;
      sum += above;
    }
  }
  return column;
}

// Whether the estimate of the largest element is right where it can go wrong: on both sides of
// every C(c, k).
template <int k>
void ExpectTakesEveryElement() {
  const std::vector<uint128> column = PascalColumn(k);
  for (uint32_t c = 0; c <= kBlockElements; ++c) {
    ASSERT_TRUE(uint128{Binomial<k>(c)} == column[c]) << "C(" << c << "," << k << ")";
  }
  for (uint32_t c = k - 1; c < kBlockElements; ++c) {
    auto first = static_cast<RankInt<k>>(column[c]);
    auto last = static_cast<RankInt<k>>(column[c + 1] - 1);
    auto middle = static_cast<RankInt<k>>(first + (last - first) / 2);
    ASSERT_EQ(TakeElement<k>(&first), c) << "k " << k;
    ASSERT_TRUE(first == 0);
    ASSERT_EQ(TakeElement<k>(&middle), c) << "k " << k;
    ASSERT_EQ(TakeElement<k>(&last), c) << "k " << k;
    ASSERT_TRUE(last == column[c + 1] - column[c] - 1);
  }
}

TEST(BinomialTest, FindsElementsByRank) {
  ExpectTakesEveryElement<1>();
  ExpectTakesEveryElement<2>();
  ExpectTakesEveryElement<3>();
  ExpectTakesEveryElement<4>();
  ExpectTakesEveryElement<5>();
  ExpectTakesEveryElement<6>();
  ExpectTakesEveryElement<7>();
  ExpectTakesEveryElement<8>();
}

// The codec takes several records at a time where it can; on both sides of every C(c, k).
template <int k>
void ExpectDecodesEveryElement() {
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  for (uint32_t c = k - 1; c < kBlockElements; ++c) {
    const uint128 first = Binomial<k>(c), last = Binomial<k>(c + 1) - 1;
    for (const uint128 rank : {first, first + Mix(c) % (last - first + 1), last}) {
      std::vector<uint16_t> subset(k);
      SubsetOfRank(rank, absl::MakeSpan(subset));
      update.positions.insert(update.positions.end(), subset.begin(), subset.end());
      for (int i = 0; i < k; ++i) update.signs.push_back((c >> i) & 1 ? -1 : 1);
    }
  }
  std::string body;
  EncodeRecords(update, &body);
  std::vector<uint16_t> positions(update.positions.size());
  std::vector<int8_t> signs(update.signs.size());
  ASSERT_EQ(DecodeRecords(body, k, 0, update.blocks(), positions.data(), signs.data()),
            absl::OkStatus());
  EXPECT_TRUE(positions == update.positions) << k;
  EXPECT_TRUE(signs == update.signs) << k;
}

TEST(RecordCodecTest, DecodesEveryElementAtBothEndsOfItsRanks) {
  ExpectDecodesEveryElement<1>();
  ExpectDecodesEveryElement<2>();
  ExpectDecodesEveryElement<3>();
  ExpectDecodesEveryElement<4>();
  ExpectDecodesEveryElement<5>();
  ExpectDecodesEveryElement<8>();
}

TEST(RecordCodecTest, RankBitsHoldTheEmptyRecordToo) {
  for (int k = 1; k <= kMaxRecordK; ++k) {
    const uint128 empty = PascalColumn(k).back();
    EXPECT_TRUE(empty >> RankBits(k) == 0) << k;
    EXPECT_TRUE(empty >> (RankBits(k) - 1) == 1) << k;
  }
  EXPECT_EQ(RecordBits(4), 48);
}

SignUpdate RandomUpdate(int k, int blocks, uint64_t seed) {
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  for (int block = 0; block < blocks; ++block) {
    std::vector<uint16_t> subset;
    for (uint64_t i = 0; subset.size() < static_cast<size_t>(k); ++i) {
      const auto position =
          static_cast<uint16_t>(SplitMix64(seed + block * 1000, i) % kBlockElements);
      if (std::find(subset.begin(), subset.end(), position) == subset.end())
        subset.push_back(position);
    }
    std::sort(subset.begin(), subset.end());
    const bool empty = block % 7 == 3;
    for (int i = 0; i < k; ++i) {
      const bool negative = SplitMix64(seed * 31 + block, i) & 1;
      update.positions.push_back(empty ? 0 : subset[i]);
      update.signs.push_back(empty ? 0 : negative ? -1 : 1);
    }
  }
  return update;
}

TEST(RecordCodecTest, DecodesWhatWasEncodedFromAnyBlock) {
  for (int k = 1; k <= kMaxRecordK; ++k) {
    const SignUpdate update = RandomUpdate(k, 100, k);
    std::string body;
    EncodeRecords(update, &body);
    ASSERT_EQ(body.size(), RecordBodyBytes(100, k));
    EXPECT_EQ(CheckRecordBody(body, 100, k), absl::OkStatus());
    for (int first : {0, 1, 13, 99}) {
      const int count = 100 - first;
      SignUpdate decoded{.k = k,
                         .positions = std::vector<uint16_t>(count * k),
                         .signs = std::vector<int8_t>(count * k)};
      ASSERT_EQ(
          DecodeRecords(body, k, first, count, decoded.positions.data(), decoded.signs.data()),
          absl::OkStatus());
      EXPECT_EQ(absl::MakeConstSpan(decoded.positions),
                absl::MakeConstSpan(update.positions).subspan(first * k));
      EXPECT_EQ(absl::MakeConstSpan(decoded.signs),
                absl::MakeConstSpan(update.signs).subspan(first * k));
    }
  }
}

absl::Status DecodeOne(uint64_t rank, uint64_t signs) {
  const uint64_t record = rank | signs << 44;
  std::string body(6, '\0');
  std::memcpy(body.data(), &record, 6);
  uint16_t positions[4];
  int8_t decoded[4];
  const absl::Status status = DecodeRecords(body, 4, 0, 1, positions, decoded);
  EXPECT_EQ(ValidateRecords(body, 4, 1), status);
  return status;
}

TEST(RecordCodecTest, RefusesRanksAboveTheEmptyRecordAndEmptyRecordsWithSigns) {
  constexpr uint64_t kEmpty = Binomial<4>(kBlockElements);
  EXPECT_EQ(DecodeOne(kEmpty - 1, 15), absl::OkStatus());
  EXPECT_EQ(DecodeOne(kEmpty, 0), absl::OkStatus());
  EXPECT_EQ(DecodeOne(kEmpty, 1),
            absl::InvalidArgumentError("block 0: the empty record has signs 1"));
  EXPECT_EQ(DecodeOne(kEmpty + 1, 0),
            absl::InvalidArgumentError("block 0: rank 11710951848961 exceeds C(4096,4)"));
}

// Random bytes are bad records or good ones; which, by how near C(4096, K) is to a power of two.
TEST(RecordCodecTest, ValidationSaysWhatDecodingSays) {
  int valid = 0, bad = 0;
  for (int k = 1; k <= kMaxRecordK; ++k) {
    for (uint64_t seed = 0; seed < 400; ++seed) {
      const uint64_t blocks = 1 + seed % 5;
      std::string body(RecordBodyBytes(blocks, k), '\0');
      for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(SplitMix64(seed, i));
      std::vector<uint16_t> positions(blocks * k);
      std::vector<int8_t> signs(blocks * k);
      const absl::Status decoded =
          DecodeRecords(body, k, 0, blocks, positions.data(), signs.data());
      EXPECT_EQ(ValidateRecords(body, k, blocks), decoded);
      ++(decoded.ok() ? valid : bad);
    }
  }
  EXPECT_GT(valid, 100);
  EXPECT_GT(bad, 100);
}

TEST(RecordCodecTest, RefusesWrongSizesAndPaddingBits) {
  std::string body;
  EncodeRecords(RandomUpdate(1, 3, 5), &body);  // 42 bits
  EXPECT_EQ(CheckRecordBody(body, 4, 1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckRecordBody(body + '\0', 3, 1).code(), absl::StatusCode::kInvalidArgument);
  body.back() = static_cast<char>(body.back() | 0x04);
  EXPECT_EQ(CheckRecordBody(body, 3, 1).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
