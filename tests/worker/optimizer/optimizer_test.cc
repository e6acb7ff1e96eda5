#include "worker/optimizer/optimizer.h"

#include <cmath>
#include <limits>

#include "absl/base/casts.h"
#include "common/codec/payload.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

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

TensorBuffer Copy(const Layout& layout, const TensorBuffer& buffer) {
  TensorBuffer copy(layout);
  copy.CopyFrom(buffer);
  return copy;
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

class OptimizerTest : public ::testing::Test {
 protected:
  const Layout layout_ = MakeLayout();
  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
  Optimizer optimizer_{&layout_, backend_.get()};
  const TensorBuffer gradient_ = MakeGradient(layout_);
};

TEST_F(OptimizerTest, NormIsOverTheWholeModel) {
  EXPECT_NEAR(optimizer_.GradientNorm(gradient_), Norm(gradient_), 1e-9 * Norm(gradient_));
}

TEST_F(OptimizerTest, NormOfAGradientThatIsNotFiniteIsNotFinite) {
  TensorBuffer gradient = Copy(layout_, gradient_);
  gradient.tensor(1)[129] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(optimizer_.GradientNorm(gradient)));
}

TEST_F(OptimizerTest, MomentumTakesTheClippedGradient) {
  const double norm = optimizer_.GradientNorm(gradient_);
  optimizer_.Compress(RoundId(7), Step(0.5f, 0.9f, 1.0f), gradient_, norm);
  // One step from 0: the momentum is eta * clip / norm * g.
  EXPECT_NEAR(Norm(optimizer_.momentum()), 0.5, 1e-5);
}

TEST_F(OptimizerTest, GradientsBelowTheClipNormAreNotScaled) {
  const double norm = optimizer_.GradientNorm(gradient_);
  optimizer_.Compress(RoundId(7), Step(0.5f, 0.9f, 1e6f), gradient_, norm);
  EXPECT_NEAR(Norm(optimizer_.momentum()), 0.5 * norm, 1e-5 * norm);
}

TEST_F(OptimizerTest, PayloadsDecodeToKVotesABlock) {
  const std::vector<SharedBytes> payloads = optimizer_.Compress(
      RoundId(7), Step(1.0f, 0.9f, 1e6f), gradient_, optimizer_.GradientNorm(gradient_));
  ASSERT_EQ(payloads.size(), layout_.segments());
  for (SegmentId segment(0); segment.value() < layout_.segments(); segment = segment.Next()) {
    const auto blocks = static_cast<uint32_t>(layout_.SegmentBlocks(segment));
    const absl::StatusOr<SparseUpdate> decoded =
        DecodeUpdate(*payloads[segment.value()], {.layout_hash = layout_.manifest().short_hash(),
                                                  .round = RoundId(7),
                                                  .segment = segment,
                                                  .blocks = blocks,
                                                  .k = kKept});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->signs.size(), blocks * kKept);
  }
}

TEST_F(OptimizerTest, WhatWasNotIncludedStaysInTheMomentum) {
  optimizer_.Compress(RoundId(7), Step(1.0f, 0.9f, 1e6f), gradient_,
                      optimizer_.GradientNorm(gradient_));
  const TensorBuffer before = Copy(layout_, optimizer_.momentum());
  optimizer_.Feedback(RoundWith(layout_, std::vector<bool>(layout_.segments(), false)), 0);
  EXPECT_TRUE(SameBits(before, optimizer_.momentum()));
}

TEST_F(OptimizerTest, FeedbackRemovesWhatWasIncludedOnce) {
  optimizer_.Compress(RoundId(7), Step(1.0f, 0.9f, 1e6f), gradient_,
                      optimizer_.GradientNorm(gradient_));
  const double before = Norm(optimizer_.momentum());
  const CommittedRound round = RoundWith(layout_, std::vector<bool>(layout_.segments(), true));
  optimizer_.Feedback(round, 0);
  EXPECT_LT(Norm(optimizer_.momentum()), before);
  const TensorBuffer after = Copy(layout_, optimizer_.momentum());
  optimizer_.Feedback(round, 0);
  EXPECT_TRUE(SameBits(after, optimizer_.momentum()));
}

// Segment 0 is included and lies in tensor a; tensor b is in the last segment.
TEST_F(OptimizerTest, FeedbackIsBySegment) {
  optimizer_.Compress(RoundId(7), Step(1.0f, 0.9f, 1e6f), gradient_,
                      optimizer_.GradientNorm(gradient_));
  const TensorBuffer before = Copy(layout_, optimizer_.momentum());
  std::vector<bool> included(layout_.segments(), false);
  included[0] = true;
  optimizer_.Feedback(RoundWith(layout_, included), 0);
  EXPECT_NE(before.tensor(0)[0], optimizer_.momentum().tensor(0)[0]);
  EXPECT_EQ(before.tensor(1), optimizer_.momentum().tensor(1));
}

TEST_F(OptimizerTest, WhatIsPendingGivesTheSameBytesAgain) {
  EXPECT_EQ(optimizer_.pending(), nullptr);
  const std::vector<SharedBytes> payloads = optimizer_.Compress(
      RoundId(7), Step(1.0f, 0.9f, 1e6f), gradient_, optimizer_.GradientNorm(gradient_));
  ASSERT_NE(optimizer_.pending(), nullptr);
  EXPECT_EQ(optimizer_.pending()->round, RoundId(7));
  const std::vector<SharedBytes> again = optimizer_.EncodePending();
  ASSERT_EQ(again.size(), payloads.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(*again[i], *payloads[i]);
}

TEST_F(OptimizerTest, WhatIsForgottenStaysInTheMomentum) {
  optimizer_.Compress(RoundId(7), Step(1.0f, 0.9f, 1e6f), gradient_,
                      optimizer_.GradientNorm(gradient_));
  const TensorBuffer before = Copy(layout_, optimizer_.momentum());
  optimizer_.ForgetPending();
  optimizer_.Feedback(RoundWith(layout_, std::vector<bool>(layout_.segments(), true)), 0);
  EXPECT_TRUE(SameBits(before, optimizer_.momentum()));
}

// As a process that goes on with the state of an earlier one.
TEST_F(OptimizerTest, ARestoredOptimizerTakesTheFeedbackThatTheFirstOneWaitedFor) {
  optimizer_.Compress(RoundId(7), Step(1.0f, 0.9f, 1e6f), gradient_,
                      optimizer_.GradientNorm(gradient_));
  Optimizer restored(&layout_, backend_.get());
  restored.Restore(Copy(layout_, optimizer_.momentum()), *optimizer_.pending());
  const CommittedRound round = RoundWith(layout_, std::vector<bool>(layout_.segments(), true));
  optimizer_.Feedback(round, 0);
  restored.Feedback(round, 0);
  EXPECT_TRUE(SameBits(optimizer_.momentum(), restored.momentum()));
}

TEST_F(OptimizerTest, FeedbackOfAnotherRoundDoesNothing) {
  optimizer_.Compress(RoundId(8), Step(1.0f, 0.9f, 1e6f), gradient_,
                      optimizer_.GradientNorm(gradient_));
  const TensorBuffer before = Copy(layout_, optimizer_.momentum());
  optimizer_.Feedback(RoundWith(layout_, std::vector<bool>(layout_.segments(), true)), 0);
  EXPECT_TRUE(SameBits(before, optimizer_.momentum()));
}

}  // namespace
}  // namespace distro::worker
