#include "common/round/agreement.h"

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using testing::Combine;
using ::testing::Optional;
using testing::WeightedUpdate;

constexpr PayloadIdentity kIdentity{.layout_hash = 1, .round = RoundId(2), .segment = SegmentId(3)};

// Signs at the given positions of one block, K = 4; fewer positions than K is no vote at all.
SparseUpdate Update(const std::vector<std::array<int, 4>>& positions,
                    const std::vector<std::array<int, 4>>& signs) {
  SparseUpdate update{.k = 4, .positions = {}, .signs = {}};
  for (const auto& block : positions)
    for (const int p : block) update.positions.push_back(static_cast<uint16_t>(p));
  for (const auto& block : signs)
    for (const int s : block) update.signs.push_back(static_cast<int8_t>(s));
  return update;
}

AgreementCounts Compare(const SparseUpdate& update, int weight, const Votes& votes) {
  const std::string payload = EncodeUpdate(kIdentity, update);
  const absl::StatusOr<AgreementCounts> counts =
      CompareWithOthers(payload,
                        {.layout_hash = 1,
                         .round = RoundId(2),
                         .segment = SegmentId(3),
                         .blocks = static_cast<uint32_t>(update.blocks()),
                         .k = 4},
                        weight, votes);
  return counts.ok() ? *counts : AgreementCounts{.agree = 9999, .disagree = 9999};
}

TEST(CompareWithOthersTest, CountsSignsAgainstTheSumOfTheOthers) {
  const SparseUpdate own = Update({{1, 2, 3, 4}}, {{1, 1, -1, 1}});
  const SparseUpdate b = Update({{1, 2, 3, 9}}, {{1, -1, -1, 1}});
  const SparseUpdate c = Update({{1, 3, 8, 9}}, {{1, 1, 1, 1}});
  const Votes votes = Combine({{WeightedUpdate{&own}, WeightedUpdate{&b}, WeightedUpdate{&c}}});
  // 1: agrees; 2: V = 0, opposed by b; 3: the others cancel out; 4: nobody else.
  EXPECT_EQ(Compare(own, 1, votes), (AgreementCounts{.agree = 1, .disagree = 1}));
}

TEST(CompareWithOthersTest, AWorkerOnProbationIsNotInTheSum) {
  const SparseUpdate own = Update({{1, 2, 3, 4}}, {{1, 1, -1, 1}});
  const SparseUpdate b = Update({{1, 2, 3, 9}}, {{1, -1, -1, 1}});
  const Votes votes = Combine({{WeightedUpdate{&b}}});
  EXPECT_EQ(Compare(own, 0, votes), (AgreementCounts{.agree = 2, .disagree = 1}));
}

TEST(CompareWithOthersTest, ABlockWithoutVotesCountsNothing) {
  const SparseUpdate own = Update({{0, 0, 0, 0}, {1, 2, 3, 4}}, {{0, 0, 0, 0}, {1, 1, 1, 1}});
  const SparseUpdate b = Update({{1, 2, 3, 4}, {4, 5, 6, 7}}, {{1, 1, 1, 1}, {-1, 1, 1, 1}});
  const Votes votes = Combine({{WeightedUpdate{&own}, WeightedUpdate{&b}}});
  EXPECT_EQ(Compare(own, 1, votes), (AgreementCounts{.agree = 0, .disagree = 1}));
}

TEST(CompareWithOthersTest, DamagedPayloadsAreInvalid) {
  const SparseUpdate own = Update({{1, 2, 3, 4}}, {{1, 1, 1, 1}});
  std::string payload = EncodeUpdate(kIdentity, own);
  payload.back() ^= 1;
  EXPECT_EQ(
      CompareWithOthers(
          payload,
          {.layout_hash = 1, .round = RoundId(2), .segment = SegmentId(3), .blocks = 1, .k = 4}, 1,
          Combine({{WeightedUpdate{&own}}}))
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(SuspiciousTest, NeedsAThousandCommonVotes) {
  EXPECT_FALSE(Suspicious({.agree = 0, .disagree = 999}, 0));
  EXPECT_TRUE(Suspicious({.agree = 0, .disagree = 1000}, 0));
}

TEST(SuspiciousTest, NeedsMoreThanSixStandardDeviations) {
  // 1600 votes: six standard deviations are 240.
  EXPECT_FALSE(Suspicious({.agree = 680, .disagree = 920}, 0));
  EXPECT_TRUE(Suspicious({.agree = 679, .disagree = 921}, 0));
}

// Values of an honest worker in the demo with five workers on a short text: -6.2 deviations, a few
// hundredths of its votes.
TEST(SuspiciousTest, NeedsMoreThanATenthOfManyVotes) {
  EXPECT_FALSE(Suspicious({.agree = 9'691, .disagree = 10'566}, 0));
  EXPECT_FALSE(Suspicious({.agree = 45'000, .disagree = 55'000}, 0));
  EXPECT_TRUE(Suspicious({.agree = 44'999, .disagree = 55'001}, 0));
}

TEST(DoubtfulTest, NeedsHalfOfWhatIsSuspicious) {
  EXPECT_FALSE(Doubtful({.agree = 0, .disagree = 999}, 0));
  EXPECT_FALSE(Doubtful({.agree = 740, .disagree = 860}, 0)) << "3 standard deviations";
  EXPECT_TRUE(Doubtful({.agree = 739, .disagree = 861}, 0));
  EXPECT_FALSE(Doubtful({.agree = 47'500, .disagree = 52'500}, 0)) << "a twentieth";
  EXPECT_TRUE(Doubtful({.agree = 47'499, .disagree = 52'501}, 0));
  EXPECT_FALSE(Doubtful({.agree = 47'499, .disagree = 52'501}, -0.05));
}

TEST(SuspiciousTest, AgreementNearZeroIsNatural) {
  EXPECT_FALSE(Suspicious({}, 0));
  EXPECT_FALSE(Suspicious({.agree = 3, .disagree = 9}, 0));
  EXPECT_FALSE(Suspicious({.agree = 500'000, .disagree = 500'000}, 0));
  EXPECT_FALSE(Suspicious({.agree = 498'000, .disagree = 502'000}, 0));
  EXPECT_FALSE(Suspicious({.agree = 900, .disagree = 100}, 0));
}

TEST(SuspiciousTest, IsMeasuredFromWhatIsTypical) {
  // The others oppose each other by a tenth of 10 000 votes: two tenths are not enough.
  EXPECT_FALSE(Suspicious({.agree = 4'000, .disagree = 6'000}, -0.1));
  EXPECT_TRUE(Suspicious({.agree = 3'999, .disagree = 6'001}, -0.1));
  EXPECT_TRUE(Suspicious({.agree = 4'000, .disagree = 6'000}, -0.09));
}

// Late in a run of deltas all of them do, since each buffer holds what others have sent by then.
TEST(AgreementTest, WhoOpposesTheOthersAsTheyDoEachOtherIsNotFound) {
  Agreement agreement;
  agreement.Add(RoundId(0), "a", {.agree = 41'000, .disagree = 59'000});
  agreement.Add(RoundId(0), "b", {.agree = 43'000, .disagree = 57'000});
  agreement.Add(RoundId(0), "c", {.agree = 38'500, .disagree = 61'500});
  EXPECT_EQ(agreement.Worst(), std::nullopt);
  agreement.Add(RoundId(0), "hostile", {.agree = 20'000, .disagree = 80'000});
  EXPECT_THAT(agreement.Worst(), Optional(std::string("hostile")));
}

TEST(AgreementTest, OneThatOpposesTwoOthersIsFound) {
  Agreement agreement;
  for (uint64_t r = 0; r < 10; ++r) {
    agreement.Add(RoundId(r), "a", {.agree = 60, .disagree = 50});
    agreement.Add(RoundId(r), "b", {.agree = 20, .disagree = 90});
    agreement.Add(RoundId(r), "c", {.agree = 55, .disagree = 55});
  }
  EXPECT_EQ(agreement.Of("b"), (AgreementCounts{.agree = 200, .disagree = 900}));
  EXPECT_THAT(agreement.Worst(), Optional(std::string("b")));
}

// Each opposes the other just as much: neither is known to be wrong.
TEST(AgreementTest, OfTwoThatDisagreeNobodyIsFound) {
  Agreement agreement;
  for (uint64_t r = 0; r < 10; ++r) {
    agreement.Add(RoundId(r), "a", {.agree = 0, .disagree = 500});
    agreement.Add(RoundId(r), "b", {.agree = 0, .disagree = 500});
    agreement.Add(RoundId(r), "c", {.agree = 10, .disagree = 0});  // too few votes to count
  }
  EXPECT_EQ(agreement.Worst(), std::nullopt);
}

// An attacker drags those that it opposes down with it; the worst is taken out first, and then
// nobody else is.
TEST(AgreementTest, TheWorstIsFoundFirstAndClearForgetsWhatItSpoiled) {
  Agreement agreement;
  for (uint64_t r = 0; r < 10; ++r) {
    agreement.Add(RoundId(r), "a", {.agree = 100, .disagree = 200});
    agreement.Add(RoundId(r), "b", {.agree = 50, .disagree = 300});
    agreement.Add(RoundId(r), "c", {.agree = 100, .disagree = 180});
  }
  EXPECT_THAT(agreement.Worst(), Optional(std::string("b")));
  agreement.Clear();
  EXPECT_EQ(agreement.Worst(), std::nullopt);
  EXPECT_EQ(agreement.Of("a"), AgreementCounts{});
}

TEST(AgreementTest, FewVotesAreNotJudged) {
  Agreement agreement;
  for (const char* name : {"a", "b", "c"})
    agreement.Add(RoundId(0), name, {.agree = 0, .disagree = 999});
  EXPECT_EQ(agreement.Worst(), std::nullopt);
}

TEST(AgreementTest, SegmentsOfARoundAddUp) {
  Agreement agreement;
  agreement.Add(RoundId(4), "a", {.agree = 1, .disagree = 2});
  agreement.Add(RoundId(4), "a", {.agree = 10, .disagree = 20});
  EXPECT_EQ(agreement.Of("a"), (AgreementCounts{.agree = 11, .disagree = 22}));
}

TEST(AgreementTest, OldRoundsAreForgotten) {
  Agreement agreement;
  agreement.Add(RoundId(0), "a", {.agree = 0, .disagree = 5000});
  agreement.Add(RoundId(0), "gone", {.agree = 0, .disagree = 5000});
  agreement.Add(RoundId(kAgreementRounds - 1), "a", {.agree = 1, .disagree = 0});
  EXPECT_EQ(agreement.Of("a"), (AgreementCounts{.agree = 1, .disagree = 5000}));
  agreement.Add(RoundId(kAgreementRounds), "a", {.agree = 1, .disagree = 0});
  EXPECT_EQ(agreement.Of("a"), (AgreementCounts{.agree = 2, .disagree = 0}));
  EXPECT_EQ(agreement.Of("gone"), AgreementCounts{});
}

}  // namespace
}  // namespace distro
