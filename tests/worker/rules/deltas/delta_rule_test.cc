#include "worker/rules/deltas/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/method/deltas/combine.h"
#include "common/method/deltas/scale.h"
#include "common/model/layout/tensor_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/rules/host_backends.h"

namespace distro::worker {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// What a scale code stands for, exact.
float Scale(int code) { return std::ldexp(static_cast<float>(ScaleOf(code)), -kScaleUnitBits); }

// A model of one matrix of 64 x 130, three blocks in segments of two, and one vector.
class DeltaRuleTest : public ::testing::Test {
 protected:
  DeltaRuleTest()
      : rule_(Whole(), {.method = InnerMethod::kAdamW, .weight_decay = 0},
              InnerTensors(layout_, {{0}, {1}}), {false, false},
              {SpansOf(&error_), SpansOf(&first_), SpansOf(&second_)}) {}

  RuleShard Whole() const { return host_.Of({.layout = &layout_, .runs = WholeRuns(layout_)}); }
  void Compress(float beta, int k = 1, uint8_t cap = 255) {
    ASSERT_TRUE(IsFinite(beta));
    ASSERT_EQ(
        rule_.Compress({.beta = beta, .k = k, .caps = {cap, cap}}, SpansOf(&begin_), SpansOf(&x_)),
        absl::OkStatus());
  }
  bool IsFinite(float beta) { return *rule_.IsFinite(beta, SpansOf(&begin_), SpansOf(&x_)); }
  void Step(double norm, float clip_norm) {
    ASSERT_EQ(
        rule_.Step({.rate = 0.1f, .clip_norm = clip_norm}, norm, SpansOf(&gradient_), SpansOf(&x_)),
        absl::OkStatus());
  }
  DeltaReadings Readings() const { return ReadingsOf(*rule_.sums()); }
  float& Error(int64_t row, int64_t col) { return error_.tensor(0)[row * 130 + col]; }
  // The result of a round in which only this worker sends.
  std::vector<DeltaResult> Results() const {
    const DeltaRecordsView update = *rule_.update();
    std::vector<DeltaResult> results;
    for (uint32_t s = 0; s < layout_.segments(); ++s) {
      const int64_t first = layout_.SegmentFirstBlock(SegmentId(s));
      const int64_t blocks = layout_.SegmentBlocks(SegmentId(s));
      DeltaUpdate part{.k = update.k, .positions = {}, .signs = {}, .codes = {}};
      part.positions.assign(update.positions.begin() + first * update.k,
                            update.positions.begin() + (first + blocks) * update.k);
      part.signs.assign(update.signs.begin() + first * update.k,
                        update.signs.begin() + (first + blocks) * update.k);
      part.codes.assign(update.codes.begin() + first, update.codes.begin() + first + blocks);
      const WeightedDelta one = {.update = &part, .weight = 1};
      results.push_back(RoundToLevels(
          CombineDeltas({&one, 1}, SegmentExtents(layout_, SegmentId(s)),
                        {.divisor = Divisor::kSenders, .weights = 1, .least_senders = 0})));
    }
    return results;
  }

  const Layout layout_ = *Layout::Create(
      *Manifest::Create({{.name = "a", .shape = {64, 130}}, {.name = "b", .shape = {3}}}), 2);
  TensorBuffer error_{layout_}, first_{layout_}, second_{layout_};
  TensorBuffer begin_{layout_}, x_{layout_}, gradient_{layout_};
  const HostBackends host_;
  DeltaRule rule_;
};

TEST_F(DeltaRuleTest, DecaysBufferOnceARound) {
  begin_.tensor(1)[0] = 0.5f;
  x_.tensor(1)[0] = 0.375f;
  Compress(0.5f);
  EXPECT_EQ(error_.tensor(1)[0], 0.125f);
  Compress(0.5f);
  EXPECT_EQ(error_.tensor(1)[0], 0.1875f);
}

TEST_F(DeltaRuleTest, SendsLargestOfBlocks) {
  x_.tensor(0)[5 * 130 + 7] = 0.001f;
  x_.tensor(0)[5 * 130 + 8] = 0.0005f;
  x_.tensor(0)[2 * 130 + 129] = -0.01f;  // the third block is two wide
  Compress(0);
  const DeltaRecordsView update = *rule_.update();
  EXPECT_THAT(update.positions, ElementsAre(5 * 64 + 7, 0, 2 * 64 + 1, 0));
  EXPECT_THAT(update.signs, ElementsAre(-1, 0, 1, 0)) << "what was done is begin - x";
  EXPECT_EQ(update.codes[0], ScaleCodeOf(0.001));
  EXPECT_EQ(update.codes[2], ScaleCodeOf(0.01));
}

TEST_F(DeltaRuleTest, CutsCodeBeforeFeedback) {
  begin_.tensor(1)[2] = 0.25f;
  Compress(1, 1, 100);
  EXPECT_EQ(rule_.update()->codes[3], 100);
  const std::vector<DeltaResult> results = Results();
  const std::vector<const DeltaResult*> included = {&results[0], &results[1]};
  ASSERT_EQ(rule_.Feedback(included), absl::OkStatus());
  EXPECT_EQ(error_.tensor(1)[2],
            0.25f - std::ldexp(static_cast<float>(ScaleOf(100)), -kScaleUnitBits));
}

TEST_F(DeltaRuleTest, SubtractsReturned) {
  std::ranges::fill(begin_.tensor(0), 0.001f);
  Compress(1, 2);
  std::vector<DeltaResult> results = Results();
  // Of the first block's two positions the second was cut; the second segment did not include us.
  results[0].positions.erase(results[0].positions.begin() + 1);
  for (size_t i = 1; i < results[0].offsets.size(); ++i) --results[0].offsets[i];
  const std::vector<const DeltaResult*> included = {&results[0], nullptr};
  ASSERT_EQ(rule_.Feedback(included), absl::OkStatus());
  const float q = std::ldexp(static_cast<float>(ScaleOf(ScaleCodeOf(0.001))), -kScaleUnitBits);
  EXPECT_EQ(Error(0, 0), 0.001f - q);
  EXPECT_EQ(Error(0, 1), 0.001f) << "cut";
  EXPECT_EQ(Error(0, 64), 0.001f - q);
  EXPECT_EQ(Error(0, 128), 0.001f) << "not included";
  EXPECT_FALSE(rule_.update().has_value());
  ASSERT_EQ(rule_.Feedback(included), absl::OkStatus());
  EXPECT_EQ(Error(0, 0), 0.001f - q) << "feedback is taken once";
}

TEST_F(DeltaRuleTest, KeepsBufferOfForgottenUpdate) {
  std::ranges::fill(begin_.tensor(0), 0.001f);
  Compress(1);
  const std::vector<DeltaResult> results = Results();
  rule_.ForgetPending();
  const std::vector<const DeltaResult*> included = {&results[0], &results[1]};
  ASSERT_EQ(rule_.Feedback(included), absl::OkStatus());
  EXPECT_THAT(error_.tensor(0), Each(0.001f));
}

TEST_F(DeltaRuleTest, KeepsBufferOnNonFiniteCopy) {
  begin_.tensor(1)[0] = 0.5f;
  Compress(1);
  Step(/*norm=*/1, /*clip_norm=*/1);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    x_.tensor(0)[100] = bad;
    EXPECT_FALSE(IsFinite(0.5f));
    ASSERT_EQ(rule_.Abandon(), absl::OkStatus());
    EXPECT_EQ(error_.tensor(1)[0], 0.5f);
    EXPECT_FALSE(rule_.update().has_value());
    EXPECT_EQ(rule_.local_steps(), 0u);
  }
}

// A difference that is the same everywhere is one frequency of each whole block.
TEST_F(DeltaRuleTest, BlocksOfWhatMuonStepsTravelAsTheirDct) {
  std::vector<InnerTensor> tensors = InnerTensors(layout_, {{0}, {1}});
  tensors[0].inside = true;
  const InnerSettings muon = {.method = InnerMethod::kMuon};
  DeltaRule rule(Whole(), muon, tensors, MuonTensors(muon, tensors),
                 {SpansOf(&error_), SpansOf(&first_), SpansOf(&second_)});
  std::ranges::fill(begin_.tensor(0), 0.001f);
  std::ranges::fill(begin_.tensor(1), 0.001f);
  const DeltaRound round = {.beta = 0, .k = 1, .caps = {255, 255}};
  ASSERT_EQ(rule.Compress(round, SpansOf(&begin_), SpansOf(&x_)), absl::OkStatus());
  EXPECT_THAT(rule.update()->positions, ElementsAre(0, 0, 1, 0)) << "the third is two wide";
  EXPECT_EQ(rule.update()->codes[0], ScaleCodeOf(64 * 0.001)) << "the frequency 0 of 64 x 64";
  EXPECT_EQ(rule.update()->codes[3], ScaleCodeOf(0.001)) << "an element of the vector";
  const DeltaResult all = ResultOf(CopyOf(*rule.update()));
  DeltaResult first = all;  // the first segment is included, of two blocks
  first.offsets.resize(3);
  const std::vector<const DeltaResult*> included = {&first, nullptr};
  ASSERT_EQ(rule.Feedback(included), absl::OkStatus());
  const double sent = std::ldexp(static_cast<double>(ScaleOf(all.codes[0])), -kScaleUnitBits);
  for (const int64_t col : {0, 63, 64, 127})
    EXPECT_NEAR(Error(17, col), 0.001 - sent / 64, 1e-9) << "of " << col;
  EXPECT_EQ(Error(17, 128), 0.001f) << "not included";
}

TEST_F(DeltaRuleTest, ReadingsSayWhatTheStepsDidAndWhatTheUpdateSaysOfTheBuffer) {
  EXPECT_EQ(Readings(), DeltaReadings());
  const float s = Scale(100);
  begin_.tensor(0)[0] = 4 * s;
  x_.tensor(0)[1] = 3 * s;
  Compress(0.5f);
  EXPECT_EQ(Readings().delta_norm, 5 * s);
  EXPECT_EQ(Readings().energy_kept, 16.0 / 25);
  x_.tensor(0)[1] = 0;
  begin_.tensor(0)[0] = 0;
  Compress(0.5f);
  EXPECT_EQ(Readings().delta_norm, 0) << "of these steps, not of the buffer";
  EXPECT_EQ(Readings().energy_kept, 16.0 / 25);
  Compress(0);
  EXPECT_FALSE(Readings().energy_kept.has_value()) << "there is nothing to say";
  EXPECT_FALSE(Readings().capped.has_value());
}

TEST_F(DeltaRuleTest, OfASmallBlockReadingsCountWhatIsInsideTheTensor) {
  const float s = Scale(100);
  std::ranges::fill(begin_.tensor(1), s);                // three, and K is 4
  std::ranges::fill(begin_.tensor(0).subspan(0, 5), s);  // five, of which four are sent
  Compress(0, 4);
  EXPECT_EQ(Readings().energy_kept, 7.0 / 8);
  const std::vector<DeltaResult> results = Results();
  const std::vector<const DeltaResult*> included = {&results[0], &results[1]};
  ASSERT_EQ(rule_.Feedback(included), absl::OkStatus());
  EXPECT_EQ(Readings().cancelled, 0) << "what fills a record up cannot come back";
}

TEST_F(DeltaRuleTest, ReadingsCountBlocksAtTheCap) {
  begin_.tensor(0)[0] = Scale(120);
  begin_.tensor(0)[64] = Scale(116);
  begin_.tensor(1)[0] = Scale(100);
  Compress(0, 1, 116);
  EXPECT_EQ(Readings().capped, 2.0 / 3) << "the third block says nothing";
}

TEST_F(DeltaRuleTest, ReadingsCountWhatDidNotComeBackWhereItWasIncluded) {
  std::ranges::fill(begin_.tensor(0), 0.001f);
  Compress(1, 2);
  std::vector<DeltaResult> results = Results();
  results[0].positions.erase(results[0].positions.begin() + 1);
  for (size_t i = 1; i < results[0].offsets.size(); ++i) --results[0].offsets[i];
  const std::vector<const DeltaResult*> first_only = {&results[0], nullptr};
  ASSERT_EQ(rule_.Feedback(first_only), absl::OkStatus());
  EXPECT_EQ(Readings().cancelled, 1.0 / 4);
  Compress(1, 2);
  ASSERT_EQ(rule_.Feedback(std::vector<const DeltaResult*>{nullptr, nullptr}), absl::OkStatus());
  EXPECT_EQ(Readings().cancelled, 1.0 / 4) << "of the last update that was included";
}

// The third block of the matrix is two wide: 128 elements, but 4096 frequencies.
TEST_F(DeltaRuleTest, OfABlockOfFrequenciesAllPositionsAreInside) {
  DeltaRule rule(Whole(), {.method = InnerMethod::kAdamW}, InnerTensors(layout_, {{0}, {1}}),
                 {true, false}, {SpansOf(&error_), SpansOf(&first_), SpansOf(&second_)});
  const double value = 0x1p-7;
  begin_.tensor(0)[128] = value;
  const DeltaRound round = {.beta = 0, .k = 200, .caps = {255, 255}};
  ASSERT_EQ(rule.Compress(round, SpansOf(&begin_), SpansOf(&x_)), absl::OkStatus());
  const double scale = Scale(rule.update()->codes[2]);
  EXPECT_DOUBLE_EQ(*ReadingsOf(*rule.sums()).energy_kept, 200 * scale * scale / (value * value));
}

TEST_F(DeltaRuleTest, InnerStepsOfTheReadingsGoOnWhenTheInnerOptimizerBeginsAnew) {
  Step(/*norm=*/1, /*clip_norm=*/1);
  ASSERT_EQ(rule_.Abandon(), absl::OkStatus());
  Step(/*norm=*/1, /*clip_norm=*/1);
  EXPECT_EQ(rule_.local_steps(), 1u);
  EXPECT_EQ(Readings().inner_steps, 2u);
}

TEST_F(DeltaRuleTest, ClipsGradient) {
  gradient_.tensor(1)[0] = 8;
  Step(/*norm=*/8, /*clip_norm=*/2);
  EXPECT_FLOAT_EQ(first_.tensor(1)[0], 0.1f * 2);  // 1 - beta1 of the clipped
  EXPECT_EQ(rule_.local_steps(), 1u);
}

}  // namespace
}  // namespace distro::worker
