#include <iostream>

#include "bench/wire/entropy.h"
#include "bench/wire/random_updates.h"
#include "common/base/file.h"
#include "common/method/codec/gap_model.h"
#include "common/method/signs/gap_format.h"
#include "common/method/signs/payload.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using bench::Agreement;
using bench::EntropyBits;
using bench::RandomVotes;

absl::StatusOr<Votes> Decode(absl::string_view body, uint32_t blocks) {
  return DecodeVoteGaps(body, blocks, /*threads=*/1);
}

std::string Encode(const Votes& votes) {
  std::string body;
  EncodeVoteGaps(votes, &body);
  return body;
}

Votes OneBlock(std::vector<uint16_t> positions, std::vector<int16_t> values) {
  return {.offsets = {0, static_cast<uint32_t>(positions.size())},
          .positions = std::move(positions),
          .values = std::move(values)};
}

void ExpectRoundTrip(const Votes& votes) {
  const absl::StatusOr<Votes> decoded =
      Decode(Encode(votes), static_cast<uint32_t>(votes.blocks()));
  ASSERT_EQ(decoded.status(), absl::OkStatus());
  EXPECT_TRUE(*decoded == votes);
}

TEST(GapModelTest, BucketsCoverEveryNumberOnce) {
  for (uint32_t value = 0; value <= 32764; ++value) {
    const Bucket bucket = BucketFor<Magnitudes>(value);
    const BucketRange range = RangeOf<Magnitudes::kMantissa>(bucket.symbol);
    ASSERT_EQ(range.raw_bits, bucket.raw_bits);
    ASSERT_LE(range.first, value);
    ASSERT_LT(value - range.first, 1u << range.raw_bits);
  }
  // The last gap bucket ends where gaps end.
  const BucketRange last = RangeOf<Gaps::kMantissa>(kSymbols<Gaps> - 1);
  EXPECT_EQ(last.first + (1u << last.raw_bits), static_cast<uint32_t>(kBlockElements));
}

TEST(GapCodecTest, DecodesWhatWasEncoded) {
  for (int workers : {1, 2, 7, 32}) {
    for (int k : {1, 4, 9, 128})
      ExpectRoundTrip(RandomVotes(workers, k, 300, workers * 100 + k, {.hot = 0.3}));
  }
}

TEST(GapCodecTest, DecodesExtremes) {
  ExpectRoundTrip(Votes());
  ExpectRoundTrip({.offsets = {0, 0, 0}, .positions = {}, .values = {}});
  ExpectRoundTrip(OneBlock({0}, {1}));
  ExpectRoundTrip(OneBlock({4095}, {-32767}));
  ExpectRoundTrip(OneBlock({0, 4095}, {16383, -16384}));
  std::vector<uint16_t> all(kBlockElements);
  for (int i = 0; i < kBlockElements; ++i) all[i] = static_cast<uint16_t>(i);
  ExpectRoundTrip(OneBlock(all, std::vector<int16_t>(kBlockElements, -7)));
}

TEST(GapCodecTest, CodesLongerThanTheLimitAreFlattened) {
  // Fibonacci counts make the deepest trees.
  std::vector<uint64_t> counts = {1, 1};
  while (counts.size() < 40)
    counts.push_back(counts[counts.size() - 1] + counts[counts.size() - 2]);
  const std::vector<CodeLength> lengths = CodeLengths(counts);
  uint32_t sum = 0;
  for (CodeLength length : lengths) {
    ASSERT_GE(length, 1);
    ASSERT_LE(length, kMaxCodeLength);
    sum += kCodeTableSize >> length;
  }
  EXPECT_EQ(sum, kCodeTableSize);
}

TEST(GapCodecTest, RefusesSumsAboveTheLimit) {
  EXPECT_EQ(Decode(Encode(OneBlock({1, 2}, {16384, -16383})), 1).status(), absl::OkStatus());
  const absl::Status status = Decode(Encode(OneBlock({1, 2}, {16384, -16384})), 1).status();
  EXPECT_EQ(status,
            absl::InvalidArgumentError("block 0: sum of |V| is at least 32768, at most 32767"));
}

TEST(GapCodecTest, RefusesTablesThatAnEncoderWouldNotChoose) {
  // One symbol coded in a body whose tables also give a code to a second count that never occurs.
  const Votes votes = {.offsets = {0, 0}, .positions = {}, .values = {}};
  GapModel<VoteFormat> model;
  model.of<Repeats>()[0] = model.of<Counts>()[0] = model.of<Counts>()[1] = 1;
  std::string body = EncodeTables<VoteFormat>(LengthsOf<VoteFormat>(model));
  body += std::string("\1\0\0\0\0", 5);  // one group of one byte: code 0, padding
  EXPECT_EQ(Decode(body, 1).status(),
            absl::InvalidArgumentError("the code lengths are not those of what was decoded"));
  EXPECT_NE(body, Encode(votes));
}

TEST(GapCodecTest, RefusesPaddingAndSizesThatDoNotFit) {
  const Votes votes = RandomVotes(3, 4, 257, 5);
  std::string body = Encode(votes);
  ASSERT_TRUE(Decode(body, 257).ok());
  EXPECT_EQ(Decode(body, 256).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Decode(body, 600).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Decode(body + '\0', 257).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GapCodecTest, RefusesTruncations) {
  const std::string body = Encode(RandomVotes(3, 4, 20, 5));
  for (size_t size = 0; size < body.size(); ++size) {
    EXPECT_EQ(Decode(absl::string_view(body).substr(0, size), 20).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(GapCodecTest, FlippedBytesAreRefusedOrCanonical) {
  const std::string body = Encode(RandomVotes(5, 9, 30, 6, {.hot = 0.8}));
  int accepted = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = body;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const absl::StatusOr<Votes> votes = Decode(flipped, 30);
      if (votes.ok()) {
        ++accepted;
        EXPECT_EQ(ValidateVotes(*votes, 30), absl::OkStatus());
        EXPECT_EQ(Encode(*votes), flipped);
      } else {
        EXPECT_EQ(votes.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
  EXPECT_GT(accepted, 0);  // flipped signs are other votes
}

// 40 groups, the last one short: several parts.
constexpr uint32_t kManyBlocks = 39 * kGroupBlocks + 7;

TEST(GapCodecTest, ThreadsDecodeWhatOneDoes) {
  const Votes votes = RandomVotes(3, 2, kManyBlocks, 8, {.hot = 0.3});
  const std::string body = Encode(votes);
  for (int threads : {1, 2, 3, 64}) {
    const absl::StatusOr<Votes> decoded = DecodeVoteGaps(body, kManyBlocks, threads);
    ASSERT_EQ(decoded.status(), absl::OkStatus());
    EXPECT_TRUE(*decoded == votes) << threads;
  }
  EXPECT_TRUE(DecodeVoteGaps(Encode(Votes()), 0, 2).value() == Votes());
}

TEST(GapCodecTest, ThreadsRefuseWhatOneDoesWithTheSameWords) {
  const std::string body = Encode(RandomVotes(3, 2, kManyBlocks, 8, {.hot = 0.3}));
  int accepted = 0, refused = 0;
  for (size_t i = 0; i < body.size(); i += 1 + body.size() / 200) {
    std::string flipped = body;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    const absl::StatusOr<Votes> one = Decode(flipped, kManyBlocks);
    const absl::StatusOr<Votes> several = DecodeVoteGaps(flipped, kManyBlocks, 3);
    EXPECT_EQ(several.status(), one.status());
    if (one.ok() && several.ok()) {
      EXPECT_TRUE(*several == *one);
    }
    ++(one.ok() ? accepted : refused);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

TEST(GapCodecTest, BodiesStayBelowTheirBound) {
  for (int k : {1, 9, 500}) {
    const Votes votes = RandomVotes(4, k, 300, k, {.hot = 0.1});
    EXPECT_LE(Encode(votes).size(), MaxVoteBodyBytes(300, 4 * k, 4 * k));
  }
  EXPECT_LE(Encode(OneBlock({4095}, {-32767})).size(), MaxVoteBodyBytes(1, 1, 32767));
}

void ExpectNearEntropy(const std::string& what, const Votes& votes) {
  const double bits = 8.0 * static_cast<double>(Encode(votes).size());
  const double ratio = bits / EntropyBits(votes);
  std::cout << what << ": "
            << static_cast<double>(votes.positions.size()) / static_cast<double>(votes.blocks())
            << " votes a block, " << bits / static_cast<double>(votes.positions.size())
            << " bits a vote, " << ratio << " of the empirical entropy\n";
  EXPECT_LE(ratio, 1.03) << what;
}

TEST(GapCodecTest, SyntheticVotesAreNearTheirEntropy) {
  struct Case {
    int workers, k;
    Agreement agreement;
  };
  const std::vector<Case> cases = {{1, 4, {}},
                                   {1, 9, {}},
                                   {1, 32, {}},
                                   {1, 128, {}},
                                   {3, 43, {}},
                                   {5, 26, {}},
                                   {8, 4, {.hot = 0.2}},
                                   {8, 16, {.hot = 0.5, .positive = 0.8}},
                                   {32, 4, {}},
                                   {32, 4, {.hot = 0.3, .positive = 0.9}},
                                   {64, 4, {.hot = 0.9, .positive = 0.9}},
                                   {128, 4, {.hot = 0.2, .positive = 0.6}},
                                   {64, 32, {.hot = 0.3, .hot_positions = 64, .positive = 0.7}}};
  for (const Case& one : cases) {
    // Enough gaps for an empirical distribution over 4096 values to mean something.
    const int blocks = std::max(512, 65536 / (one.workers * one.k));
    const std::string name =
        absl::StrCat("W=", one.workers, " K=", one.k, " hot=", one.agreement.hot);
    ExpectNearEntropy(name, RandomVotes(one.workers, one.k, blocks, 7, one.agreement));
  }
}

// One round of eight workers with K = 16 (record_votes.cc).
TEST(GapCodecTest, RecordedVotesAreNearTheirEntropy) {
  const std::string bytes =
      ReadFile(DISTRO_SOURCE_DIR "/tests/common/method/codec/recorded_votes.payload").value();
  const Votes votes =
      DecodeVotes(bytes, {.layout_hash = 0, .round = {}, .segment = {}, .blocks = 260, .k = 0})
          .value();
  ExpectNearEntropy("recorded W=8 K=16", votes);
}

}  // namespace
}  // namespace distro
