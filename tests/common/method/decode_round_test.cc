#include <variant>

#include "common/base/checksum.h"
#include "common/method/deltas/payload.h"
#include "common/method/methods.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/round_builder.h"

namespace distro {
namespace {

using testing::BuildDeltaRound;
using testing::BuildRound;
using testing::BuiltRound;
using testing::Committed;
using testing::Decode;
using ::testing::HasSubstr;

class DecodedRoundTest : public ::testing::Test {
 protected:
  // Segment 1 of a round of deltas with another result in it.
  CommittedRound With(const DeltaResult& result) const {
    BuiltRound built = BuildDeltaRound(layout_, RoundId(5), 0);
    built.payloads[1] =
        EncodeDeltaResult(IdentifyPayload(layout_, RoundId(5), SegmentId(1)), result);
    built.header.mutable_segments(1)->set_payload_bytes(built.payloads[1].size());
    built.header.mutable_segments(1)->set_checksum(Xxh3(built.payloads[1]));
    return Committed(layout_, built);
  }
  // Of the two blocks of segment 1: one of the first tensor's, one of the second's.
  static DeltaResult OneEntry(uint16_t position, uint8_t code) {
    return {.offsets = {0, 0, 1},
            .positions = {position},
            .signs = {1},
            .levels = {0},
            .codes = {0, code}};
  }
  const Layout layout_ = testing::SmallLayout();
};

TEST_F(DecodedRoundTest, HasTheResultsOfTheRoundsMethod) {
  const auto deltas =
      Decode(layout_, Committed(layout_, BuildDeltaRound(layout_, RoundId(5), 0)), 2);
  ASSERT_TRUE(deltas.ok()) << deltas.status();
  const auto* const results = std::get_if<std::vector<DeltaResult>>(&*deltas);
  ASSERT_NE(results, nullptr);
  ASSERT_EQ(results->size(), layout_.segments());
  EXPECT_EQ((*results)[1].blocks(), 2);
  EXPECT_EQ((*results)[1].positions, (std::vector<uint16_t>{0, 1, 0, 1}));
  const auto votes = Decode(layout_, Committed(layout_, BuildRound(layout_, RoundId(5), 0)), 2);
  ASSERT_TRUE(votes.ok()) << votes.status();
  ASSERT_TRUE(std::holds_alternative<std::vector<Votes>>(*votes));
  EXPECT_EQ(std::get<std::vector<Votes>>(*votes).size(), layout_.segments());
}

TEST_F(DecodedRoundTest, TakesAResultThatKeepsToTheCapsAndTheTensors) {
  const auto decoded = Decode(layout_, With(OneEntry(64, 200)), 1);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
}

// No aggregator makes these: its log, or memory, is damaged.
TEST_F(DecodedRoundTest, RefusesResultOutsideRound) {
  const absl::Status above = Decode(layout_, With(OneEntry(0, 201)), 1).status();
  EXPECT_EQ(above.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(above.message()),
              HasSubstr("segment 1: deltas: block 1: scale code 201 is above the cap 200"));
  DeltaResult no_level_zero = OneEntry(0, 100);
  no_level_zero.levels = {3};
  EXPECT_FALSE(Decode(layout_, With(no_level_zero), 1).ok());
}

TEST_F(DecodedRoundTest, RefusesOtherMethod) {
  BuiltRound built = BuildDeltaRound(layout_, RoundId(5), 0);
  *built.header.mutable_step() = BuildRound(layout_, RoundId(5), 0).header.step();
  built.header.clear_scale_medians();
  EXPECT_EQ(Decode(layout_, Committed(layout_, built), 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
