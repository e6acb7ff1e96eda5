// The rule of the deltas method behind the interface UpdateRule.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "common/method/deltas/payload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/plain_deltas.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/worker/delta_worker.h"
#include "worker/rules/deltas/delta_rule.h"
#include "worker/rules/deltas/inner_optimizer.h"
#include "worker/rules/host_backends.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {
namespace {

using testing::BuildDeltaRound;
using testing::BuiltRound;
using testing::Committed;
using testing::DeltaWorker;
using testing::kSmallLlama;
using testing::SpansOf;

std::vector<uint32_t> Bits(const TensorBuffer& buffer) {
  std::vector<uint32_t> bits;
  for (int i = 0; i < buffer.tensors(); ++i) {
    for (const float value : buffer.tensor(i)) bits.push_back(std::bit_cast<uint32_t>(value));
  }
  return bits;
}

void CopyTo(const TensorBuffer& from, TensorBuffer* to) {
  for (int i = 0; i < from.tensors(); ++i) std::ranges::copy(from.tensor(i), to->tensor(i).begin());
}

std::vector<std::string> BytesOf(const std::vector<SharedBytes>& payloads) {
  std::vector<std::string> bytes;
  for (const SharedBytes& payload : payloads) bytes.push_back(*payload);
  return bytes;
}

DeltaUpdate Part(const DeltaUpdate& update, int64_t first, int64_t blocks) {
  const auto of = [](const auto& all, int64_t begin, int64_t count) {
    return std::vector(all.begin() + begin, all.begin() + begin + count);
  };
  return {.k = update.k,
          .positions = of(update.positions, first * update.k, blocks * update.k),
          .signs = of(update.signs, first * update.k, blocks * update.k),
          .codes = of(update.codes, first, blocks)};
}

// The same by hand: the optimizer and the rule, with elements of their own.
class ByHand {
 public:
  explicit ByHand(DeltaWorker* worker)
      : error(worker->layout),
        first(worker->layout),
        second(worker->layout),
        x(worker->layout),
        worker_(*worker),
        tensors_(
            InnerTensors(worker_.layout, UnitTensors(worker_.model, worker_.layout.manifest()))),
        settings_({.beta1 = static_cast<float>(worker_.config.adam_beta1()),
                   .beta2 = static_cast<float>(worker_.config.adam_beta2()),
                   .epsilon = static_cast<float>(worker_.config.adam_epsilon()),
                   .mu = static_cast<float>(worker_.config.muon_momentum()),
                   .weight_decay = static_cast<float>(worker_.config.weight_decay())}) {}

  InnerOptimizer MakeInner() {
    return InnerOptimizer(settings_, tensors_, Whole(), SpansOf(&first), SpansOf(&second));
  }
  DeltaRule MakeRule() {
    return DeltaRule(Whole(), settings_, tensors_, MuonTensors(settings_, tensors_),
                     {SpansOf(&error), SpansOf(&first), SpansOf(&second)});
  }
  // A round of `rule`, with the gradients that the worker draws.
  void TakeRound(DeltaRule* rule, uint64_t seed) {
    CopyTo(worker_.parameters, &x);
    for (const int index : {0, 1}) {
      worker_.DrawGradient(seed, index);
      EXPECT_EQ(rule->Step({.rate = kRates[index], .clip_norm = 1}, worker_.norm,
                           SpansOf(&worker_.gradient), SpansOf(&x)),
                absl::OkStatus());
    }
    const std::vector<uint8_t> caps(worker_.layout.tensors().size(), 255);
    ASSERT_EQ(rule->Compress({.beta = 0.5f, .k = 3, .caps = caps}, SpansOf(&worker_.parameters),
                             SpansOf(&x)),
              absl::OkStatus());
  }

  static constexpr float kRates[] = {0.01f, 0.02f};
  TensorBuffer error, first, second, x;

 private:
  RuleShard Whole() const {
    return host_.Of({.layout = &worker_.layout, .runs = WholeRuns(worker_.layout)});
  }

  DeltaWorker& worker_;
  const HostBackends host_;
  const std::vector<InnerTensor> tensors_;
  const InnerSettings settings_;
};

class LocalDeltasTest : public ::testing::Test {
 protected:
  // The blocks of an update that a segment has.
  DeltaUpdate OfSegment(const DeltaUpdate& update, SegmentId segment) const {
    return Part(update, worker_.layout.SegmentFirstBlock(segment),
                worker_.layout.SegmentBlocks(segment));
  }
  // What everybody downloads when only this worker sends.
  DecodedRound Alone(const DeltaUpdate& update) const {
    std::vector<DeltaResult> segments;
    for (uint32_t s = 0; s < worker_.layout.segments(); ++s)
      segments.push_back(ResultOf(OfSegment(update, SegmentId(s))));
    return segments;
  }
  // A record whose member 1 is included in all segments but the first.
  CommittedRound Record() const {
    BuiltRound built = BuildDeltaRound(worker_.layout, RoundId(4), 7);
    built.header.mutable_segments(0)->set_included("\x01");
    return Committed(worker_.layout, built);
  }
  bool IsFinite() {
    return *worker_.rule->IsFinite(worker_.step, SpansOf(&worker_.parameters), SpansOf(&worker_.x));
  }

  DeltaWorker worker_{kSmallLlama, /*segment_blocks=*/3};
};

TEST_F(LocalDeltasTest, IsTheRuleOfARunOfDeltas) {
  EXPECT_TRUE(worker_.kind.takes_local_steps);
  EXPECT_EQ(worker_.kind.element_arrays, 3);
  v1::RunConfig signs = worker_.config;
  signs.set_method(v1::METHOD_SIGNS);
  EXPECT_FALSE(RuleOf(signs, &worker_.layout, worker_.model).takes_local_steps);
}

TEST_F(LocalDeltasTest, StepsAsInnerOptimizer) {
  ByHand by_hand(&worker_);
  InnerOptimizer inner = by_hand.MakeInner();
  CopyTo(worker_.parameters, &by_hand.x);
  for (const int index : {0, 1}) {
    worker_.DrawGradient(/*seed=*/1, index);
    ASSERT_EQ(inner.Step(ByHand::kRates[index], static_cast<float>(1 / worker_.norm),
                         SpansOf(&worker_.gradient), SpansOf(&by_hand.x)),
              absl::OkStatus());
  }
  worker_.TakeSteps(/*seed=*/1);
  EXPECT_EQ(Bits(worker_.x), Bits(by_hand.x));
  EXPECT_NE(Bits(worker_.x), Bits(worker_.parameters));
  EXPECT_EQ(Bits(worker_.first), Bits(by_hand.first));
  EXPECT_EQ(Bits(worker_.second), Bits(by_hand.second));
  EXPECT_EQ(worker_.rule->local_steps(), 2u);
}

TEST_F(LocalDeltasTest, PayloadsAreTheUpdateOfTheRuleAndValid) {
  ByHand by_hand(&worker_);
  DeltaRule rule = by_hand.MakeRule();
  by_hand.TakeRound(&rule, /*seed=*/1);
  const std::vector<SharedBytes> payloads = worker_.TakeRound(RoundId(4), /*seed=*/1);
  EXPECT_EQ(Bits(worker_.error), Bits(by_hand.error));
  ASSERT_GT(payloads.size(), 3u);
  for (uint32_t s = 0; s < payloads.size(); ++s) {
    const SegmentId segment(s);
    const DeltaUpdate update = OfSegment(CopyOf(*rule.update()), segment);
    EXPECT_EQ(*payloads[s],
              EncodeDeltaUpdate(IdentifyPayload(worker_.layout, RoundId(4), segment), update));
    const std::vector<uint8_t> any(update.blocks(), 255);
    EXPECT_EQ(ValidateDeltaUpdate(*payloads[s],
                                  ExpectPayload(worker_.layout, RoundId(4), segment, 3), any),
              absl::OkStatus());
  }
}

TEST_F(LocalDeltasTest, CodesKeepTheCapsOfTheRound) {
  worker_.step.mutable_deltas()->set_caps(std::string(worker_.layout.tensors().size(), 7));
  worker_.TakeRound(RoundId(4), /*seed=*/1);
  for (const BlockBytes& segment : worker_.pending().segments)
    EXPECT_THAT(segment[2], ::testing::Each(7)) << "all blocks have moved by more";
}

TEST_F(LocalDeltasTest, TakesFeedbackOfTheSegmentsThatIncludeIt) {
  ByHand by_hand(&worker_);
  DeltaRule rule = by_hand.MakeRule();
  by_hand.TakeRound(&rule, /*seed=*/1);
  worker_.TakeRound(RoundId(4), /*seed=*/1);
  const DecodedRound decoded = Alone(CopyOf(*rule.update()));
  std::vector<const DeltaResult*> results = {nullptr};
  const auto& segments = std::get<std::vector<DeltaResult>>(decoded);
  for (size_t s = 1; s < segments.size(); ++s) results.push_back(&segments[s]);
  const std::vector<uint32_t> before = Bits(worker_.error);
  ASSERT_EQ(rule.Feedback(results), absl::OkStatus());
  ASSERT_EQ(worker_.rule->Feedback(Record(), decoded, /*member=*/1), absl::OkStatus());
  EXPECT_EQ(Bits(worker_.error), Bits(by_hand.error));
  EXPECT_NE(Bits(worker_.error), before);
}

TEST_F(LocalDeltasTest, FeedbackOfARoundThatWasNotAppliedIsRefused) {
  worker_.TakeRound(RoundId(4), /*seed=*/1);
  const std::vector<uint32_t> before = Bits(worker_.error);
  EXPECT_EQ(worker_.rule->Feedback(Record(), {}, /*member=*/1).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Bits(worker_.error), before);
}

TEST_F(LocalDeltasTest, KeepsBufferOnNonFiniteCopy) {
  worker_.TakeRound(RoundId(4), /*seed=*/1);
  const std::vector<uint32_t> before = Bits(worker_.error);
  worker_.TakeSteps(/*seed=*/2);
  worker_.x.tensor(2)[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(IsFinite());
  ASSERT_TRUE(worker_.rule->Abandon().ok());
  EXPECT_EQ(Bits(worker_.error), before);
  EXPECT_EQ(worker_.rule->local_steps(), 0u) << "the inner optimizer begins anew";
  EXPECT_EQ(Bits(worker_.first), Bits(TensorBuffer(worker_.layout)));
  worker_.TakeSteps(/*seed=*/3);
  EXPECT_TRUE(IsFinite()) << "and goes on";
}

TEST_F(LocalDeltasTest, HasNoLookahead) {
  EXPECT_EQ(worker_.rule->Lookahead(0.1f, SpansOf(&worker_.parameters), SpansOf(&worker_.x)).code(),
            absl::StatusCode::kFailedPrecondition);
}

// The feedback of what was pending comes after the restart, then another round.
TEST_F(LocalDeltasTest, ContinuesAfterRestart) {
  worker_.TakeRound(RoundId(3), /*seed=*/1);
  const std::vector<SharedBytes> sent = worker_.TakeRound(RoundId(4), /*seed=*/2);
  const PendingUpdate pending = worker_.pending();
  DeltaWorker restarted(kSmallLlama, /*segment_blocks=*/3);
  restarted.rule->RestoreLocalSteps(worker_.rule->local_steps());
  CopyTo(worker_.error, &restarted.error);
  CopyTo(worker_.first, &restarted.first);
  CopyTo(worker_.second, &restarted.second);
  ASSERT_TRUE(restarted.rule->RestorePending(pending).ok());
  restarted.optimizer->SetPending({.round = pending.round, .k = pending.k});
  EXPECT_EQ(BytesOf(restarted.Encode()), BytesOf(sent));

  DeltaUpdate update{.k = pending.k, .positions = {}, .signs = {}, .codes = {}};
  for (uint32_t s = 0; s < worker_.layout.segments(); ++s) {
    const auto part = testing::DecodeDeltaUpdate(
        *sent[s], ExpectPayload(worker_.layout, RoundId(4), SegmentId(s), pending.k));
    ASSERT_TRUE(part.ok()) << part.status();
    update.positions.insert(update.positions.end(), part->positions.begin(), part->positions.end());
    update.signs.insert(update.signs.end(), part->signs.begin(), part->signs.end());
    update.codes.insert(update.codes.end(), part->codes.begin(), part->codes.end());
  }
  for (DeltaWorker* worker : {&worker_, &restarted})
    ASSERT_TRUE(worker->rule->Feedback(Record(), Alone(update), /*member=*/1).ok());
  EXPECT_EQ(BytesOf(restarted.TakeRound(RoundId(5), /*seed=*/3)),
            BytesOf(worker_.TakeRound(RoundId(5), /*seed=*/3)));
  EXPECT_EQ(Bits(restarted.error), Bits(worker_.error));
  EXPECT_EQ(Bits(restarted.first), Bits(worker_.first));
  EXPECT_EQ(Bits(restarted.second), Bits(worker_.second));
  EXPECT_EQ(restarted.rule->local_steps(), 6u);
}

// Without its count of steps the moments are corrected for another time: the steps of AdamW differ.
TEST_F(LocalDeltasTest, NeedsCountOfSteps) {
  worker_.TakeRound(RoundId(4), /*seed=*/1);
  DeltaWorker restarted(kSmallLlama, /*segment_blocks=*/3);
  CopyTo(worker_.first, &restarted.first);
  CopyTo(worker_.second, &restarted.second);
  worker_.TakeSteps(/*seed=*/2);
  restarted.TakeSteps(/*seed=*/2);
  EXPECT_NE(Bits(restarted.x), Bits(worker_.x));
}

}  // namespace
}  // namespace distro::worker
