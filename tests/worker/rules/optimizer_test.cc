#include "worker/rules/optimizer.h"

#include <cmath>
#include <limits>

#include "absl/base/casts.h"
#include "common/method/signs/payload.h"
#include "gtest/gtest.h"
#include "tests/testing/plain_updates.h"
#include "tests/testing/worker/sharded_optimizer.h"

namespace distro::worker {
namespace {

using testing::Copy;
using testing::DecodeSignUpdate;

constexpr int kKept = 4;

// Two tensors with padding, cut by segment borders.
Layout MakeLayout() {
  return *Layout::Create(*Manifest::Create({{"a", {100, 70}}, {"b", {130}}}), 2);
}

v1::StepParameters Step(float eta, float beta, float clip_norm) {
  v1::StepParameters step;
  step.set_eta_bits(absl::bit_cast<uint32_t>(eta));
  step.set_beta(beta);
  step.set_clip_norm(clip_norm);
  step.set_kept_per_block(kKept);
  return step;
}

// A deterministic gradient without symmetry.
TensorBuffer MakeGradient(const Layout& layout) {
  TensorBuffer gradient(layout);
  uint32_t state = 1;
  for (int i = 0; i < gradient.tensors(); ++i) {
    for (float& value : gradient.tensor(i)) {
      state = state * 1664525 + 1013904223;
      value = static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
    }
  }
  return gradient;
}

double Norm(const TensorBuffer& buffer) {
  double sum = 0;
  for (int i = 0; i < buffer.tensors(); ++i) {
    for (float value : buffer.tensor(i)) sum += double{value} * value;
  }
  return std::sqrt(sum);
}

bool SameBits(const TensorBuffer& a, const TensorBuffer& b) {
  for (int i = 0; i < a.tensors(); ++i) {
    for (size_t j = 0; j < a.tensor(i).size(); ++j) {
      if (absl::bit_cast<uint32_t>(a.tensor(i)[j]) != absl::bit_cast<uint32_t>(b.tensor(i)[j]))
        return false;
    }
  }
  return true;
}

// A committed round 7 in which member 0 is included in the segments of `included`.
CommittedRound RoundWith(const Layout& layout, std::vector<bool> included) {
  auto header = std::make_shared<v1::RoundHeader>();
  header->set_round(7);
  header->add_members()->set_name("w");
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    header->add_segments()->set_included(std::string(1, included[i] ? 1 : 0));
  }
  return {.header = header, .hash = 0, .payloads = {}};
}

// One rank, and several that cut a model of three block rows, more of them than rows too.
class OptimizerTest : public ::testing::TestWithParam<int> {
 protected:
  std::vector<SharedBytes> Compress(uint64_t round, float clip_norm) {
    return optimizer_.Compress(RoundId(round), Step(1.0f, 0.9f, clip_norm), gradient_);
  }

  const Layout layout_ = MakeLayout();
  testing::ShardedOptimizer optimizer_{&layout_, GetParam()};
  const TensorBuffer gradient_ = MakeGradient(layout_);
};
INSTANTIATE_TEST_SUITE_P(Ranks, OptimizerTest, ::testing::Values(1, 2, 3, 4));

TEST_P(OptimizerTest, NormIsOverTheWholeModel) {
  EXPECT_NEAR(optimizer_.Norm(gradient_), Norm(gradient_), 1e-9 * Norm(gradient_));
}

TEST_P(OptimizerTest, NormOfAGradientThatIsNotFiniteIsNotFinite) {
  TensorBuffer gradient = Copy(layout_, gradient_);
  gradient.tensor(1)[129] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(optimizer_.Norm(gradient)));
}

TEST_P(OptimizerTest, MomentumTakesTheClippedGradient) {
  optimizer_.Compress(RoundId(7), Step(0.5f, 0.9f, 1.0f), gradient_);
  // One step from 0: the momentum is eta * clip / norm * g.
  EXPECT_NEAR(Norm(optimizer_.momentum()), 0.5, 1e-5);
}

TEST_P(OptimizerTest, GradientsBelowTheClipNormAreNotScaled) {
  const double norm = optimizer_.Norm(gradient_);
  optimizer_.Compress(RoundId(7), Step(0.5f, 0.9f, 1e6f), gradient_);
  EXPECT_NEAR(Norm(optimizer_.momentum()), 0.5 * norm, 1e-5 * norm);
}

TEST_P(OptimizerTest, PayloadsDecodeToKVotesABlock) {
  const std::vector<SharedBytes> payloads = Compress(7, 1e6f);
  ASSERT_EQ(payloads.size(), layout_.segments());
  for (SegmentId segment(0); segment.value() < layout_.segments(); segment = segment.Next()) {
    const auto blocks = static_cast<uint32_t>(layout_.SegmentBlocks(segment));
    const absl::StatusOr<SignUpdate> decoded = DecodeSignUpdate(
        *payloads[segment.value()], {.layout_hash = layout_.manifest().short_hash(),
                                     .round = RoundId(7),
                                     .segment = segment,
                                     .blocks = blocks,
                                     .k = kKept});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->signs.size(), blocks * kKept);
  }
}

TEST_P(OptimizerTest, KeepsExcludedInMomentum) {
  Compress(7, 1e6f);
  const TensorBuffer before = optimizer_.momentum();
  optimizer_.Feedback(RoundWith(layout_, std::vector<bool>(layout_.segments(), false)), 0);
  EXPECT_TRUE(SameBits(before, optimizer_.momentum()));
}

TEST_P(OptimizerTest, FeedbackRemovesWhatWasIncludedOnce) {
  Compress(7, 1e6f);
  const double before = Norm(optimizer_.momentum());
  const CommittedRound round = RoundWith(layout_, std::vector<bool>(layout_.segments(), true));
  optimizer_.Feedback(round, 0);
  EXPECT_LT(Norm(optimizer_.momentum()), before);
  const TensorBuffer after = optimizer_.momentum();
  optimizer_.Feedback(round, 0);
  EXPECT_TRUE(SameBits(after, optimizer_.momentum()));
}

// Segment 0 is included and lies in tensor a; tensor b is in the last segment.
TEST_P(OptimizerTest, FeedbackIsBySegment) {
  Compress(7, 1e6f);
  const TensorBuffer before = optimizer_.momentum();
  std::vector<bool> included(layout_.segments(), false);
  included[0] = true;
  optimizer_.Feedback(RoundWith(layout_, included), 0);
  EXPECT_NE(before.tensor(0)[0], optimizer_.momentum().tensor(0)[0]);
  EXPECT_EQ(before.tensor(1), optimizer_.momentum().tensor(1));
}

TEST_P(OptimizerTest, EncodesPendingAgain) {
  EXPECT_FALSE(optimizer_.pending().has_value());
  const std::vector<SharedBytes> payloads = Compress(7, 1e6f);
  ASSERT_TRUE(optimizer_.pending().has_value());
  EXPECT_EQ(optimizer_.pending()->round, RoundId(7));
  const std::vector<SharedBytes> again = optimizer_.Encode();
  ASSERT_EQ(again.size(), payloads.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(*again[i], *payloads[i]);
}

TEST_P(OptimizerTest, KeepsForgottenInMomentum) {
  Compress(7, 1e6f);
  const TensorBuffer before = optimizer_.momentum();
  optimizer_.optimizer().ForgetPending();
  optimizer_.Feedback(RoundWith(layout_, std::vector<bool>(layout_.segments(), true)), 0);
  EXPECT_TRUE(SameBits(before, optimizer_.momentum()));
}

// As a process that continues with the state of an earlier one.
TEST_P(OptimizerTest, TakesFeedbackOnceRestored) {
  Compress(7, 1e6f);
  testing::ShardedOptimizer restored(&layout_, 3);
  restored.Restore(optimizer_.momentum(), optimizer_.pending());
  const CommittedRound round = RoundWith(layout_, std::vector<bool>(layout_.segments(), true));
  optimizer_.Feedback(round, 0);
  restored.Feedback(round, 0);
  EXPECT_TRUE(SameBits(optimizer_.momentum(), restored.momentum()));
}

TEST_P(OptimizerTest, FeedbackOfAnotherRoundDoesNothing) {
  Compress(8, 1e6f);
  const TensorBuffer before = optimizer_.momentum();
  optimizer_.Feedback(RoundWith(layout_, std::vector<bool>(layout_.segments(), true)), 0);
  EXPECT_TRUE(SameBits(before, optimizer_.momentum()));
}

// Two rounds: the second one compresses a momentum from which the first was taken out.
TEST_P(OptimizerTest, GivesTheBitsOfOneRank) {
  testing::ShardedOptimizer one(&layout_);
  EXPECT_EQ(optimizer_.Norm(gradient_), one.Norm(gradient_));
  for (const uint64_t round : {7, 8}) {
    const auto payloads = Compress(round, 1.0f);
    const auto expected = one.Compress(RoundId(round), Step(1.0f, 0.9f, 1.0f), gradient_);
    for (uint32_t i = 0; i < layout_.segments(); ++i) EXPECT_EQ(*payloads[i], *expected[i]);
    std::vector<bool> included(layout_.segments(), true);
    included[1] = false;
    optimizer_.Feedback(RoundWith(layout_, included), 0);
    one.Feedback(RoundWith(layout_, included), 0);
    EXPECT_TRUE(SameBits(optimizer_.momentum(), one.momentum()));
    EXPECT_TRUE(SameBits(optimizer_.Lookahead(0.1f, gradient_), one.Lookahead(0.1f, gradient_)));
  }
}

}  // namespace
}  // namespace distro::worker
