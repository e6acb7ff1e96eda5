#include "common/run/round/agreement.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(SuspiciousTest, NeedsAHundredCommonVotes) {
  EXPECT_FALSE(Suspicious({.agree = 0, .disagree = 99}, 0));
  EXPECT_TRUE(Suspicious({.agree = 0, .disagree = 100}, 0));
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
  EXPECT_FALSE(Doubtful({.agree = 0, .disagree = 99}, 0));
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

// Each of these workers compared with each other one, with counts that follow from their shares.
class AgreementTest : public ::testing::Test {
 protected:
  // `share` is (agree - disagree) / votes, for both.
  void Pair(const std::string& a, const std::string& b, double share, uint64_t votes = 1000,
            uint64_t round = 0) {
    const auto agree =
        static_cast<uint64_t>(std::lround(static_cast<double>(votes) * (1 + share) / 2));
    const AgreementCounts counts = {.agree = agree, .disagree = votes - agree};
    agreement_.Add(RoundId(round), a, b, counts);
    agreement_.Add(RoundId(round), b, a, counts);
  }
  // Every pair of `some`.
  void Among(const std::vector<std::string>& some, double share) {
    for (size_t i = 0; i < some.size(); ++i)
      for (size_t j = 0; j < i; ++j) Pair(some[i], some[j], share);
  }
  // Every one of `some` with every one of `others`.
  void Between(const std::vector<std::string>& some, const std::vector<std::string>& others,
               double share, uint64_t votes = 1000) {
    for (const std::string& a : some)
      for (const std::string& b : others) Pair(a, b, share, votes);
  }

  // Those that are found, one after the other.
  std::vector<std::string> Found() {
    std::vector<std::string> found;
    for (auto worst = agreement_.Worst(); worst.has_value(); worst = agreement_.Worst()) {
      found.push_back(*worst);
      agreement_.Remove(*worst);
    }
    std::ranges::sort(found);
    return found;
  }

  Agreement agreement_;
};

TEST_F(AgreementTest, FindsOpponentOfTwo) {
  Pair("a", "c", 0.3);
  Between({"b"}, {"a", "c"}, -0.6);
  EXPECT_EQ(agreement_.Of("b"), (AgreementCounts{.agree = 200, .disagree = 800}));
  EXPECT_THAT(Found(), ElementsAre("b"));
}

// The honest ones are compared with each other at few positions, the others at all that they sent.
TEST_F(AgreementTest, AccomplicesThatConfirmEachOtherAreFound) {
  Among({"a", "b", "c", "d", "e"}, 0.1);
  Between({"x", "y", "z"}, {"a", "b", "c", "d", "e"}, -0.9);
  for (const auto& [one, other] : {std::pair{"x", "y"}, {"x", "z"}, {"y", "z"}})
    Pair(one, other, 1, 1'000'000);
  EXPECT_THAT(Found(), ElementsAre("x", "y", "z"));
}

TEST_F(AgreementTest, FindsMinorityOfAccomplices) {
  for (int workers = 3; workers <= 12; ++workers) {
    for (int hostile = 1; 2 * hostile < workers; ++hostile) {
      agreement_ = Agreement();
      std::vector<std::string> good, bad;
      for (int i = 0; i < workers - hostile; ++i) good.push_back(absl::StrCat("good", i));
      for (int i = 0; i < hostile; ++i) bad.push_back(absl::StrCat("hostile", i));
      Among(good, 0.2);
      Among(bad, 1);
      Between(good, bad, -0.8);
      EXPECT_EQ(Found(), bad) << workers;
    }
  }
}

TEST_F(AgreementTest, ProtectsHonestFromMinority) {
  Among({"a", "b", "c", "d", "e"}, 0.1);
  Among({"x", "y", "z"}, 1);
  Between({"x", "y", "z"}, {"b", "c", "d", "e"}, 0.1);
  Between({"x", "y", "z"}, {"a"}, -1);
  EXPECT_THAT(Found(), IsEmpty());
}

// Late in a run of deltas all of them do, since each buffer holds what others have sent by then.
TEST_F(AgreementTest, SparesWhoOpposesAsOthersDo) {
  Among({"a", "b", "c", "d"}, -0.2);
  Between({"e"}, {"a", "b", "c", "d"}, -0.28);
  EXPECT_EQ(agreement_.Worst(), std::nullopt);
  Between({"hostile"}, {"a", "b", "c", "d", "e"}, -0.6);
  EXPECT_THAT(agreement_.Worst(), Optional(std::string("hostile")));
}

// Each opposes the other just as much: neither is known to be wrong.
TEST_F(AgreementTest, OfTwoThatDisagreeNobodyIsFound) {
  Pair("a", "b", -1);
  Between({"c"}, {"a", "b"}, 1, 10);  // too few votes to count
  EXPECT_THAT(Found(), IsEmpty());
  EXPECT_EQ(agreement_.Of("a"), (AgreementCounts{.agree = 0, .disagree = 1000}));
}

TEST_F(AgreementTest, FewVotesAreNotJudged) {
  for (const auto& [one, other] : {std::pair{"a", "b"}, {"a", "c"}, {"b", "c"}})
    Pair(one, other, -1, kMinCommonVotes - 1);
  EXPECT_THAT(Found(), IsEmpty());
  EXPECT_EQ(agreement_.Of("a"), AgreementCounts{});
}

// An update on probation: the others are not judged by it.
TEST_F(AgreementTest, CountsForTheComparedOnly) {
  agreement_.Add(RoundId(0), "a", "b", {.agree = 300, .disagree = 0});
  EXPECT_EQ(agreement_.Of("a").agree, 300u);
  EXPECT_EQ(agreement_.Of("b"), AgreementCounts{});
}

TEST_F(AgreementTest, ForgetsRemovedWorker) {
  Among({"a", "b", "c"}, 0.5);
  agreement_.Remove("a");
  EXPECT_EQ(agreement_.Of("a"), AgreementCounts{});
  EXPECT_EQ(agreement_.Of("b"), (AgreementCounts{.agree = 750, .disagree = 250}));
  agreement_.Remove("b");
  EXPECT_EQ(agreement_.Of("c"), AgreementCounts{});
  agreement_.Remove("nobody");
}

TEST_F(AgreementTest, OldRoundsFade) {
  Pair("a", "b", -1, 4000);
  Pair("a", "b", 1, 500, kAgreementHalfLife - 1);
  EXPECT_EQ(agreement_.Of("a"), (AgreementCounts{.agree = 500, .disagree = 4000}));
  Pair("a", "b", 1, 500, kAgreementHalfLife);
  EXPECT_EQ(agreement_.Of("a"), (AgreementCounts{.agree = 750, .disagree = 2000}));
  Pair("a", "c", 1, 100, 1'000'000 * kAgreementHalfLife);
  EXPECT_EQ(agreement_.Of("a"), (AgreementCounts{.agree = 100, .disagree = 0}));
  EXPECT_EQ(agreement_.Of("b"), AgreementCounts{});
}

}  // namespace
}  // namespace distro
