#include "common/method/signs/update_reader.h"

#include "bench/wire/random_updates.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using bench::RandomUpdate;
using ::distro::testing::Combine;
using ::distro::testing::WeightedUpdate;
using ::testing::StartsWith;

constexpr PayloadIdentity kIdentity = {
    .layout_hash = 5, .round = RoundId(1), .segment = SegmentId(2)};

PayloadExpectation Expect(uint32_t blocks, int k) {
  return {.layout_hash = 5, .round = RoundId(1), .segment = SegmentId(2), .blocks = blocks, .k = k};
}

TEST(SignUpdateReaderTest, GivesEveryBlockOfTheUpdate) {
  for (int k : {4, 9, 3000}) {
    const SignUpdate update = RandomUpdate(k, k == 3000 ? 5 : 700, 3);
    const auto blocks = static_cast<uint32_t>(update.blocks());
    const std::string bytes = EncodeSignUpdate(kIdentity, update);
    SignUpdateReader reader = SignUpdateReader::Create(bytes, Expect(blocks, k)).value();
    ASSERT_EQ(reader.blocks(), blocks);
    for (uint32_t block = 0; block < blocks; ++block) {
      ASSERT_EQ(reader.next_block(), block);
      absl::Span<const uint16_t> positions;
      absl::Span<const int8_t> signs;
      ASSERT_EQ(reader.NextBlock(&positions, &signs), absl::OkStatus());
      ASSERT_EQ(positions, absl::MakeConstSpan(update.positions).subspan(size_t{block} * k, k));
      ASSERT_EQ(signs, absl::MakeConstSpan(update.signs).subspan(size_t{block} * k, k));
    }
  }
}

TEST(SignUpdateReaderTest, GoesOnFromTheBlockItSkipsTo) {
  const SignUpdate update = RandomUpdate(4, 2000, 3);
  const std::string bytes = EncodeSignUpdate(kIdentity, update);
  SignUpdateReader reader = SignUpdateReader::Create(bytes, Expect(2000, 4)).value();
  absl::Span<const uint16_t> positions;
  absl::Span<const int8_t> signs;
  for (uint32_t block : {0, 3, 700, 1999}) {
    reader.SkipTo(block);
    EXPECT_EQ(reader.next_block(), block);
    ASSERT_EQ(reader.NextBlock(&positions, &signs), absl::OkStatus());
    EXPECT_EQ(positions, absl::MakeConstSpan(update.positions).subspan(size_t{block} * 4, 4));
  }
  reader.SkipTo(2000);
  EXPECT_EQ(reader.next_block(), reader.blocks());
}

struct Round {
  std::vector<SignUpdate> updates;
  std::vector<std::string> bytes;
  std::vector<WeightedUpdate> weighted;
  std::vector<WeightedSignPayload> payloads;
};

Round MakeRound(int workers, int k, int blocks) {
  Round round;
  for (int worker = 0; worker < workers; ++worker) {
    round.updates.push_back(RandomUpdate(k, blocks, worker, {.hot = 0.4, .positive = 0.7}));
    round.bytes.push_back(EncodeSignUpdate(kIdentity, round.updates.back()));
  }
  for (int worker = 0; worker < workers; ++worker) {
    const int weight = 1 + worker % 3;
    round.weighted.push_back({&round.updates[worker], weight});
    round.payloads.push_back({round.bytes[worker], weight});
  }
  return round;
}

TEST(CombineSignPayloadsTest, EqualsCombiningTheDecodedUpdates) {
  for (int k : {1, 4, 8, 9, 40}) {
    const Round round = MakeRound(7, k, 600);
    const absl::StatusOr<Votes> votes = CombineSignPayloads(round.payloads, Expect(600, k));
    ASSERT_EQ(votes.status(), absl::OkStatus());
    EXPECT_EQ(ValidateVotes(*votes, 600), absl::OkStatus());
    EXPECT_TRUE(*votes == Combine(round.weighted)) << k;
  }
}

TEST(CombineSignPayloadsTest, RangesAreTheWholeInPieces) {
  for (int k : {1, 4, 8}) {
    const Round round = MakeRound(3, k, 600);
    std::vector<Votes> parts;
    for (const SegmentRange range : {SegmentRange{0, 1}, SegmentRange{1, 0}, SegmentRange{1, 500},
                                     SegmentRange{501, 99}, SegmentRange{600, 0}}) {
      parts.push_back(CombineSignPayloads(round.payloads, Expect(600, k), range).value());
      EXPECT_EQ(parts.back().blocks(), range.count);
    }
    EXPECT_TRUE(Concatenate(std::move(parts)) == Combine(round.weighted)) << k;
  }
}

TEST(CombineSignPayloadsTest, OrderDoesNotMatter) {
  Round round = MakeRound(5, 4, 100);
  const Votes votes = CombineSignPayloads(round.payloads, Expect(100, 4)).value();
  std::reverse(round.payloads.begin(), round.payloads.end());
  EXPECT_TRUE(CombineSignPayloads(round.payloads, Expect(100, 4)).value() == votes);
}

TEST(CombineSignPayloadsTest, GivesNoVotesOfNone) {
  EXPECT_EQ(CombineSignPayloads({}, Expect(3, 4)).value().offsets,
            std::vector<uint32_t>({0, 0, 0, 0}));
}

TEST(CombineSignPayloadsTest, NamesThePayloadThatIsWrong) {
  Round round = MakeRound(3, 9, 50);
  round.bytes[2].back() = static_cast<char>(round.bytes[2].back() ^ 1);
  const absl::Status status = CombineSignPayloads(round.payloads, Expect(50, 9)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith("payload 2: payload: checksum"));
}

TEST(CombineSignPayloadsTest, RefusesWeightsThatCouldOverflowAVote) {
  Round round = MakeRound(2, 4, 5);
  round.payloads[0].weight = 8190;
  round.payloads[1].weight = 1;
  EXPECT_EQ(CombineSignPayloads(round.payloads, Expect(5, 4)).status(), absl::OkStatus());
  round.payloads[1].weight = 2;
  EXPECT_EQ(
      CombineSignPayloads(round.payloads, Expect(5, 4)).status(),
      absl::InvalidArgumentError("k 4 times the sum of weights 8192 is 32768, at most 32767"));
  round.payloads[1].weight = -1;
  EXPECT_EQ(CombineSignPayloads(round.payloads, Expect(5, 4)).status(),
            absl::InvalidArgumentError("weight -1 is negative"));
}

}  // namespace
}  // namespace distro
