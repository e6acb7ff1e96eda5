#include "worker/train/own_update.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

constexpr uint64_t kThis = 7;
constexpr uint64_t kEarlier = 6;

// A round of two segments whose only member is of `incarnation`, included in the first `included`.
CommittedRound Round(uint64_t round, uint64_t incarnation, int included, int weight = 1) {
  auto header = std::make_shared<v1::RoundHeader>();
  header->set_round(round);
  v1::Member* member = header->add_members();
  member->set_incarnation(incarnation);
  member->set_weight(weight);
  for (int s = 0; s < 2; ++s)
    header->add_segments()->set_included(std::string(1, static_cast<char>(s < included)));
  CommittedRound committed;
  committed.header = std::move(header);
  return committed;
}

class OwnUpdateTest : public ::testing::Test {
 protected:
  void Send(uint64_t round) {
    own_.Make({.loss = 2, .local_steps = 3}, 40);
    own_.AddSender();
    own_.Answer(RoundId(round), 40, /*abstains=*/false);
  }
  OwnUpdate own_{kThis};
};

TEST_F(OwnUpdateTest, TellsWhatBecameOfAnUpdate) {
  Send(5);
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 2), 0, RoundId(0)), OwnPart::kCounted);
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 1), 0, RoundId(0)), OwnPart::kCounted);
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 0), 0, RoundId(0)), OwnPart::kLate);
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 2, 0), 0, RoundId(0)), OwnPart::kProbation);
  EXPECT_EQ(own_.PartIn(Round(5, kEarlier, 2), 0, RoundId(0)), OwnPart::kOtherSender);
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 2), -1, RoundId(0)), OwnPart::kAbsent);
  EXPECT_EQ(own_.WhyExcluded(Round(5, kThis, 2), 0), std::nullopt);
  EXPECT_EQ(own_.WhyExcluded(Round(5, kThis, 1), 0), Exclusion::kLate) << "not wholly";
}

TEST_F(OwnUpdateTest, TellsWhyNoneWasSent) {
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 0), 0, RoundId(0)), OwnPart::kNotReady);
  EXPECT_FALSE(own_.Answer(RoundId(5), 40, /*abstains=*/true));
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 0), 0, RoundId(0)), OwnPart::kNotFinite);
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 0), 0, RoundId(6)), std::nullopt) << "before the join";
  EXPECT_EQ(own_.PartIn(Round(5, kThis, 0), -1, RoundId(0)), std::nullopt) << "no samples";
  EXPECT_EQ(own_.WhyExcluded(Round(5, kThis, 0), 0), std::nullopt);
}

TEST_F(OwnUpdateTest, CountsAnUpdateThatIsOfferedAgainOnce) {
  own_.Make({.loss = 2}, 40);
  own_.AddSender();
  EXPECT_TRUE(own_.Answer(RoundId(5), 40, false));
  own_.ForgetAnswers();
  EXPECT_FALSE(own_.has_answered(RoundId(5)));
  EXPECT_FALSE(own_.Answer(RoundId(5), 40, false));
  EXPECT_TRUE(own_.has_answered(RoundId(5)));
  EXPECT_EQ(own_.last_sent(), RoundId(5));
}

TEST_F(OwnUpdateTest, IsOfEveryProcessThatSentIt) {
  WorkerState state;
  state.senders = {kEarlier};
  state.pending_loss = 1.5;
  state.pending_steps = 4;
  state.pending_samples = 80;
  own_.Restore(state);
  EXPECT_TRUE(own_.IsSender(Round(5, kEarlier, 2), 0));
  EXPECT_FALSE(own_.IsSender(Round(5, kThis, 2), 0));
  own_.AddSender();
  own_.AddSender();
  WorkerState saved;
  own_.Save(&saved);
  EXPECT_EQ(saved.senders, (std::vector<uint64_t>{kEarlier, kThis}));
  EXPECT_EQ(saved.pending_loss, 1.5);
  EXPECT_EQ(saved.pending_steps, 4u);
  EXPECT_EQ(saved.pending_samples, 80u);
  own_.Make({.loss = 2}, 120);
  EXPECT_FALSE(own_.IsSender(Round(5, kEarlier, 2), 0)) << "another update";
}

}  // namespace
}  // namespace distro::worker
