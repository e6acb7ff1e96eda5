#include "server/round/reference_state.h"

#include "absl/strings/str_cat.h"
#include "common/run/record/log_reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
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
  using Tensors = std::vector<uint64_t>;
  static uint64_t Hash(const Tensors& tensors) { return CombineTensorHashes(tensors); }

  // An upload to `round`; `included`: its votes are in the result.
  void Report(const std::string& worker, const Tensors& tensors, bool included = true) {
    state_.AddTensors(round_, Hash(tensors), tensors);
    Member(worker, Hash(tensors), included);
  }
  void Member(const std::string& worker, uint64_t state_hash, bool included = true) {
    v1::Member* member = header_.add_members();
    member->set_name(worker);
    member->set_state_hash(state_hash);
    if (header_.segments().empty()) header_.add_segments();
    std::string& bits = *header_.mutable_segments(0)->mutable_included();
    const int index = header_.members_size() - 1;
    bits.resize(index / 8 + 1, '\0');
    if (included) bits[index / 8] = static_cast<char>(bits[index / 8] | 1 << index % 8);
  }
  StateVerdict Commit() {
    header_.set_round(round_.value());
    return state_.Commit(header_);
  }
  // The next round to report to.
  void Begin(RoundId round) {
    round_ = round;
    header_.Clear();
  }
  static std::vector<std::string> Names(const StateVerdict& verdict) {
    std::vector<std::string> names;
    for (const Disagreement& d : verdict.disagree) names.push_back(d.name);
    return names;
  }

  const Tensors right_{1, 2, 3};
  const Tensors wrong_{1, 9, 3};
  const Tensors other_{8, 2, 7};
  const Layout layout_ = MakeLayout(3);
  RoundId round_ = kRound;
  v1::RoundHeader header_;
  ReferenceState state_{&layout_, Hash(right_)};
};

TEST_F(ReferenceStateTest, IsMissingWithoutReports) {
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.reference, std::nullopt);
  EXPECT_THAT(verdict.disagree, IsEmpty());
}

TEST_F(ReferenceStateTest, IsOfThreeAgainstOne) {
  Report("a", right_);
  Report("b", right_);
  Report("c", wrong_);
  Report("d", right_);
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.reference, (LogReference{Hash(right_), true}));
  EXPECT_TRUE(verdict.certain());
  ASSERT_THAT(Names(verdict), ElementsAre("c"));
  EXPECT_EQ(verdict.disagree[0].state_hash, Hash(wrong_));
  EXPECT_EQ(verdict.disagree[0].tensors, "t1");
}

TEST_F(ReferenceStateTest, IsOfTwoAgainstOne) {
  Report("a", wrong_);
  Report("b", right_);
  Report("c", right_);
  const StateVerdict verdict = Commit();
  EXPECT_TRUE(verdict.certain());
  EXPECT_THAT(Names(verdict), ElementsAre("a"));
}

// Neither is known to be wrong: both take the log again.
TEST_F(ReferenceStateTest, IsMissingWhereTwoDisagree) {
  Report("a", right_);
  Report("b", other_);
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.reference, std::nullopt);
  EXPECT_FALSE(verdict.certain());
  EXPECT_THAT(Names(verdict), ElementsAre("a", "b"));
  EXPECT_EQ(verdict.disagree[0].tensors, "t0, t2");
}

TEST_F(ReferenceStateTest, NeedsMajority) {
  Report("a", right_);
  Report("b", right_);
  Report("c", wrong_);
  Report("d", wrong_);
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.reference, std::nullopt);
  EXPECT_THAT(Names(verdict), ElementsAre("a", "b", "c", "d"));
}

TEST_F(ReferenceStateTest, IsMissingWhereThreeDiffer) {
  Report("a", right_);
  Report("b", wrong_);
  Report("c", other_);
  const StateVerdict verdict = Commit();
  EXPECT_FALSE(verdict.certain());
  EXPECT_THAT(Names(verdict), ElementsAre("a", "b", "c"));
}

// Enough for a snapshot, not to quarantine somebody.
TEST_F(ReferenceStateTest, IsUncertainOfTwo) {
  Report("a", right_);
  Report("b", right_);
  Report("c", wrong_, /*included=*/false);
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.reference, (LogReference{Hash(right_), false}));
  EXPECT_FALSE(verdict.certain());
  EXPECT_THAT(Names(verdict), ElementsAre("c"));
}

// Newcomers on probation, however many.
TEST_F(ReferenceStateTest, IgnoresVoteOfExcluded) {
  for (const char* name : {"a", "b", "c"}) Report(name, right_);
  for (const char* name : {"d", "e", "f", "g"}) Report(name, wrong_, /*included=*/false);
  const StateVerdict verdict = Commit();
  EXPECT_TRUE(verdict.certain());
  EXPECT_THAT(Names(verdict), ElementsAre("d", "e", "f", "g"));
}

TEST_F(ReferenceStateTest, OfRoundZeroTheRunsOwnSnapshotIsTheReference) {
  Begin(RoundId(0));
  for (const char* name : {"a", "b", "c"}) Report(name, wrong_);
  Report("d", right_);
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.reference, (LogReference{Hash(right_), true}));
  EXPECT_THAT(Names(verdict), ElementsAre("a", "b", "c"));
}

// An archiver's report changes no verdict, neither before the commit nor after it.
TEST_F(ReferenceStateTest, IgnoresVoteOfArchiver) {
  Report("a", right_);
  Report("b", wrong_);
  state_.AddReplay(kRound, right_);
  EXPECT_THAT(Names(Commit()), ElementsAre("a", "b"));
  Begin(RoundId(8));
  for (const char* name : {"a", "b", "c"}) Report(name, right_);
  state_.AddReplay(RoundId(8), wrong_);
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.reference, (LogReference{Hash(right_), true}));
  EXPECT_THAT(verdict.disagree, IsEmpty());
}

TEST_F(ReferenceStateTest, TellsContradictionOnce) {
  Report("a", right_);
  state_.AddReplay(kRound, wrong_);
  EXPECT_FALSE(state_.TakeContradiction(kRound).has_value());  // nothing is committed
  Commit();
  const std::optional<Contradiction> found = state_.TakeContradiction(kRound);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->state_hash, Hash(wrong_));
  EXPECT_EQ(found->reference, Hash(right_));
  EXPECT_EQ(found->tensors, "t1");
  state_.AddReplay(kRound, other_);
  EXPECT_FALSE(state_.TakeContradiction(kRound).has_value());
}

TEST_F(ReferenceStateTest, ComparesLaterArchiver) {
  Report("a", right_);
  Commit();
  state_.AddReplay(kRound, right_);
  EXPECT_FALSE(state_.TakeContradiction(kRound).has_value());
  state_.AddReplay(kRound, other_);
  ASSERT_TRUE(state_.TakeContradiction(kRound).has_value());
}

TEST_F(ReferenceStateTest, WithoutAReferenceAnArchiverContradictsNothing) {
  Report("a", right_);
  Report("b", wrong_);
  state_.AddReplay(kRound, other_);
  Commit();
  EXPECT_FALSE(state_.TakeContradiction(kRound).has_value());
}

// As after a restart: the record has no tensors' hashes.
TEST_F(ReferenceStateTest, TensorsThatNobodyReportedAreNotNamed) {
  Member("a", Hash(right_));
  Commit();
  state_.AddReplay(kRound, wrong_);
  EXPECT_EQ(state_.TakeContradiction(kRound)->tensors, "");
}

TEST_F(ReferenceStateTest, TensorsThatDoNotMakeTheHashAreNotNamed) {
  for (const char* name : {"a", "b", "c", "d"}) Report(name, right_);
  state_.AddTensors(kRound, Hash(wrong_), other_);
  Member("e", Hash(wrong_));
  state_.AddTensors(kRound, 5, std::vector<uint64_t>(100000, 1));
  Member("f", 5);
  state_.AddTensors(kRound, 6, {});
  Member("g", 6);
  const StateVerdict verdict = Commit();
  ASSERT_EQ(verdict.disagree.size(), 3u);
  for (const Disagreement& disagreement : verdict.disagree)
    EXPECT_EQ(disagreement.tensors, "") << disagreement.name;
}

TEST_F(ReferenceStateTest, OnlyTheFirstTensorsAreNamed) {
  const Layout layout = MakeLayout(9);
  const std::vector<uint64_t> right(9, 1), wrong(9, 2);
  ReferenceState state(&layout, 0);
  state.AddTensors(kRound, Hash(right), right);
  Member("a", Hash(right));
  header_.set_round(kRound.value());
  state.Commit(header_);
  state.AddReplay(kRound, wrong);
  EXPECT_EQ(state.TakeContradiction(kRound)->tensors, "t0, t1, t2, t3, t4 and 4 more");
}

TEST_F(ReferenceStateTest, RoundsThatAreLongOverAreForgotten) {
  for (uint64_t r = 1; r <= 1 + kReferenceRounds; ++r) {
    Begin(RoundId(r));
    Report("a", right_);
    Commit();
  }
  state_.AddReplay(RoundId(1), wrong_);
  EXPECT_FALSE(state_.TakeContradiction(RoundId(1)).has_value());
  state_.AddReplay(RoundId(2), wrong_);
  EXPECT_TRUE(state_.TakeContradiction(RoundId(2)).has_value());
}

// Many workers with invented hashes use no memory for tensors.
TEST_F(ReferenceStateTest, OfManyStatesOnlyTheFirstAreNamed) {
  Begin(RoundId(0));
  state_.AddTensors(round_, Hash(right_), right_);
  for (uint64_t i = 0; i < 100; ++i) Report(absl::StrCat("w", 100 + i), {100 + i, 0, 0});
  const StateVerdict verdict = Commit();
  EXPECT_EQ(verdict.disagree.size(), 100u);
  EXPECT_EQ(std::ranges::count_if(verdict.disagree,
                                  [](const Disagreement& d) { return !d.tensors.empty(); }),
            7);
}

}  // namespace
}  // namespace distro::server
