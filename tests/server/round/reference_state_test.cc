#include "server/round/reference_state.h"

#include "common/replica/replica.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr RoundId kRound(7);

// A layout of `tensors` small tensors t0, t1, ...
Layout MakeLayout(int tensors) {
  std::vector<TensorSpec> specs;
  for (int i = 0; i < tensors; ++i) specs.push_back({absl::StrCat("t", i), {4}});
  return *Layout::Create(*Manifest::Create(std::move(specs)), 16);
}

class ReferenceStateTest : public ::testing::Test {
 protected:
  static uint64_t Hash(const std::vector<uint64_t>& tensors) {
    return CombineTensorHashes(tensors);
  }
  void Report(const char* worker, const std::vector<uint64_t>& tensors, RoundId round = kRound) {
    state_.AddWorker(round, worker, Hash(tensors), tensors);
  }
  void Archive(const std::vector<uint64_t>& tensors, RoundId round = kRound) {
    state_.SetReference(round, Hash(tensors), tensors);
  }
  std::vector<std::string> Disagree(RoundId round = kRound) {
    std::vector<std::string> names;
    for (const Disagreement& d : state_.Judge(round).disagree) names.push_back(d.name);
    return names;
  }

  const std::vector<uint64_t> right_{1, 2, 3};
  const std::vector<uint64_t> wrong_{1, 9, 3};
  const std::vector<uint64_t> other_{8, 2, 7};
  const Layout layout_ = MakeLayout(3);
  ReferenceState state_{&layout_};
};

TEST_F(ReferenceStateTest, NothingIsKnownOfARoundWithoutReports) {
  const StateVerdict verdict = state_.Judge(kRound);
  EXPECT_EQ(verdict.source, ReferenceSource::kNone);
  EXPECT_THAT(verdict.disagree, IsEmpty());
}

TEST_F(ReferenceStateTest, ThreeAgainstOneIsAReference) {
  Report("a", right_);
  Report("b", right_);
  Report("c", wrong_);
  Report("d", right_);
  const StateVerdict verdict = state_.Judge(kRound);
  EXPECT_EQ(verdict.source, ReferenceSource::kMajority);
  EXPECT_EQ(verdict.reference, Hash(right_));
  EXPECT_TRUE(verdict.certain());
  ASSERT_THAT(Disagree(), ElementsAre("c"));
  EXPECT_EQ(verdict.disagree[0].state_hash, Hash(wrong_));
  EXPECT_EQ(verdict.disagree[0].tensors, "t1");
}

TEST_F(ReferenceStateTest, TwoAgainstOneIsAReference) {
  Report("a", wrong_);
  Report("b", right_);
  Report("c", right_);
  EXPECT_TRUE(state_.Judge(kRound).certain());
  EXPECT_THAT(Disagree(), ElementsAre("a"));
}

// Neither is known to be wrong: both take the log again.
TEST_F(ReferenceStateTest, TwoWorkersThatDisagreeHaveNoReference) {
  Report("a", right_);
  Report("b", other_);
  const StateVerdict verdict = state_.Judge(kRound);
  EXPECT_EQ(verdict.source, ReferenceSource::kNone);
  EXPECT_FALSE(verdict.certain());
  EXPECT_THAT(Disagree(), ElementsAre("a", "b"));
  EXPECT_EQ(verdict.disagree[0].tensors, "t0, t2");
}

TEST_F(ReferenceStateTest, AHalfIsNoMajority) {
  Report("a", right_);
  Report("b", right_);
  Report("c", wrong_);
  Report("d", wrong_);
  EXPECT_EQ(state_.Judge(kRound).source, ReferenceSource::kNone);
  EXPECT_THAT(Disagree(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(ReferenceStateTest, ThreeThatAllDifferHaveNoReference) {
  Report("a", right_);
  Report("b", wrong_);
  Report("c", other_);
  EXPECT_FALSE(state_.Judge(kRound).certain());
  EXPECT_THAT(Disagree(), ElementsAre("a", "b", "c"));
}

TEST_F(ReferenceStateTest, TwoThatAgreeAreNotJudged) {
  Report("a", right_);
  Report("b", right_);
  EXPECT_EQ(state_.Judge(kRound).source, ReferenceSource::kNone);
  EXPECT_THAT(Disagree(), IsEmpty());
}

TEST_F(ReferenceStateTest, TheArchiversWordDecidesBetweenTwo) {
  Report("a", right_);
  Report("b", wrong_);
  Archive(right_);
  const StateVerdict verdict = state_.Judge(kRound);
  EXPECT_EQ(verdict.source, ReferenceSource::kGiven);
  EXPECT_TRUE(verdict.certain());
  EXPECT_THAT(Disagree(), ElementsAre("b"));
}

// The archiver of an earlier round says nothing of this one.
TEST_F(ReferenceStateTest, AMismatchWhileTheArchiverIsSilentIsJudgedByTheWorkersAlone) {
  Archive(right_, RoundId(6));
  Report("a", right_);
  Report("b", wrong_);
  EXPECT_FALSE(state_.Judge(kRound).certain());
  EXPECT_THAT(Disagree(), ElementsAre("a", "b"));
  Report("c", right_);
  EXPECT_TRUE(state_.Judge(kRound).certain());
  EXPECT_THAT(Disagree(), ElementsAre("b"));
}

// It is the reference, so the others resync; but one of the two sides is wrong, and nobody is quarantined.
TEST_F(ReferenceStateTest, TheArchiversWordAgainstTheMajorityQuarantinesNobody) {
  Report("a", right_);
  Report("b", right_);
  Report("c", right_);
  Report("d", wrong_);
  Archive(wrong_);
  const StateVerdict verdict = state_.Judge(kRound);
  EXPECT_EQ(verdict.source, ReferenceSource::kGiven);
  EXPECT_EQ(verdict.reference, Hash(wrong_));
  EXPECT_TRUE(verdict.contradicted);
  EXPECT_FALSE(verdict.certain());
  EXPECT_THAT(Disagree(), ElementsAre("a", "b", "c"));
}

TEST_F(ReferenceStateTest, TheArchiversWordAgainstTwoWorkersIsNotContradicted) {
  Report("a", wrong_);
  Report("b", wrong_);
  Archive(right_);
  EXPECT_TRUE(state_.Judge(kRound).certain());
}

TEST_F(ReferenceStateTest, AReferenceThatComesLateChangesTheVerdict) {
  Report("a", right_);
  Report("b", wrong_);
  EXPECT_FALSE(state_.Judge(kRound).certain());
  Archive(wrong_);
  EXPECT_TRUE(state_.Judge(kRound).certain());
  EXPECT_THAT(Disagree(), ElementsAre("a"));
}

TEST_F(ReferenceStateTest, TheLastReportOfANameCounts) {
  Archive(right_);
  Report("a", wrong_);
  Report("a", right_);
  EXPECT_THAT(Disagree(), IsEmpty());
}

TEST_F(ReferenceStateTest, TensorsThatDoNotMakeTheHashAreNotNamed) {
  Archive(right_);
  state_.AddWorker(kRound, "a", Hash(wrong_), other_);
  state_.AddWorker(kRound, "b", 5, std::vector<uint64_t>(100000, 1));
  state_.AddWorker(kRound, "c", 6, {});
  const StateVerdict verdict = state_.Judge(kRound);
  ASSERT_EQ(verdict.disagree.size(), 3u);
  for (const Disagreement& disagreement : verdict.disagree)
    EXPECT_EQ(disagreement.tensors, "") << disagreement.name;
}

TEST_F(ReferenceStateTest, OnlyTheFirstTensorsAreNamed) {
  const Layout layout = MakeLayout(9);
  ReferenceState state(&layout);
  const std::vector<uint64_t> right(9, 1), wrong(9, 2);
  state.SetReference(kRound, Hash(right), right);
  state.AddWorker(kRound, "a", Hash(wrong), wrong);
  EXPECT_EQ(state.Judge(kRound).disagree.at(0).tensors, "t0, t1, t2, t3, t4 and 4 more");
}

TEST_F(ReferenceStateTest, RoundsThatAreLongOverAreForgotten) {
  Report("a", right_, RoundId(0));
  Report("b", wrong_, RoundId(0));
  EXPECT_THAT(Disagree(RoundId(0)), ElementsAre("a", "b"));
  for (uint64_t r = 1; r <= kReferenceRounds; ++r) Report("a", right_, RoundId(r));
  EXPECT_THAT(Disagree(RoundId(0)), IsEmpty());
  Report("b", wrong_, RoundId(0));
  EXPECT_EQ(state_.Judge(RoundId(0)).source, ReferenceSource::kNone);
  EXPECT_THAT(Disagree(RoundId(0)), IsEmpty());
  Archive(wrong_, RoundId(kReferenceRounds));
  EXPECT_THAT(Disagree(RoundId(kReferenceRounds)), ElementsAre("a"));
}

// It judges nobody, but vouches for a snapshot; the last one counts.
TEST_F(ReferenceStateTest, OfOlderRoundsTheArchiversLastWordIsRemembered) {
  for (uint64_t r = 10; r < 10 + kReferenceRounds; ++r) Report("a", right_, RoundId(r));
  Archive(wrong_, RoundId(3));
  EXPECT_EQ(state_.Judge(RoundId(3)).source, ReferenceSource::kGiven);
  EXPECT_EQ(state_.Judge(RoundId(3)).reference, Hash(wrong_));
  EXPECT_THAT(Disagree(RoundId(3)), IsEmpty());
  Archive(right_, RoundId(4));
  EXPECT_EQ(state_.Judge(RoundId(4)).reference, Hash(right_));
  EXPECT_EQ(state_.Judge(RoundId(3)).source, ReferenceSource::kNone);
  EXPECT_EQ(state_.Judge(RoundId(10)).source, ReferenceSource::kNone);
}

// A crowd that invents hashes takes no memory for tensors, and cannot keep the archiver's out.
TEST_F(ReferenceStateTest, ManyStatesOfARoundDoNotHideTheReference) {
  for (uint64_t i = 0; i < 100; ++i) Report(absl::StrCat("w", i).c_str(), {100 + i, 0, 0});
  Archive(right_);
  const StateVerdict verdict = state_.Judge(kRound);
  EXPECT_EQ(verdict.disagree.size(), 100u);
  EXPECT_EQ(std::ranges::count_if(verdict.disagree,
                                  [](const Disagreement& d) { return !d.tensors.empty(); }),
            7);
}

}  // namespace
}  // namespace distro::server
