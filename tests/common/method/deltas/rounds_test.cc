// Rounds of deltas at the aggregator: the Open frame, accepted updates, and results.
#include "common/method/deltas/rounds.h"

#include <bit>

#include "bench/wire/random_deltas.h"
#include "common/base/checksum.h"
#include "common/method/base/learning_rate.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/method.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/step.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/weighted.h"

namespace distro {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kKept = 8;
constexpr RoundPlace kPlace = {RoundId(3), SegmentId(0)};

v1::RunConfig Config(uint32_t local_steps = 1) {
  v1::RunConfig config;
  config.set_name("deltas");
  config.set_method(v1::METHOD_DELTAS);
  config.set_rounds(100);
  config.set_warmup_rounds(10);
  config.set_peak_learning_rate(0.01);
  config.set_sequence_length(16);
  config.set_samples_per_worker(2);
  config.set_kept_per_block(kKept);
  config.set_local_steps(local_steps);
  return *CompleteRunConfig(config);
}

// A matrix of 64 blocks and a tensor of one dimension, 10 blocks; one segment.
Layout TwoTensors() {
  return *Layout::Create(*Manifest::Create({{"matrix", {512, 512}}, {"norm", {40000}}}), 16384);
}

class DeltaRoundsTest : public ::testing::Test {
 protected:
  explicit DeltaRoundsTest(Layout layout = TwoTensors())
      : layout_(std::make_shared<const Layout>(std::move(layout))) {}
  std::shared_ptr<const RoundMethod> Method(const v1::RunConfig& config) const {
    return MakeDeltaRounds(config, layout_, as_dct_);
  }
  DeltaUpdate Update(uint64_t seed) const { return bench::RandomDelta(kKept, Blocks(), seed); }
  SharedBytes Payload(const DeltaUpdate& update) const {
    return std::make_shared<const std::string>(
        EncodeDeltaUpdate(IdentifyPayload(*layout_, kPlace.round, kPlace.segment), update));
  }
  int64_t Blocks() const { return layout_->SegmentBlocks(kPlace.segment); }
  SegmentResult Combine(const v1::RunConfig& config, const std::vector<SharedBytes>& payloads,
                        int threads = 1, const std::vector<int>& weights = {}) {
    auto result =
        Method(config)->Combine(kPlace, testing::Weighted(payloads, weights), threads, clock_);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }
  DeltaResult Decode(const SegmentResult& result, int k = kKept) const {
    return *DecodeDeltaResult(*result.payload,
                              ExpectPayload(*layout_, kPlace.round, kPlace.segment, k));
  }

  const std::shared_ptr<const Layout> layout_;
  const std::vector<bool> as_dct_ = {true, false};
  testing::FakeClock clock_;
};

TEST_F(DeltaRoundsTest, OpenCarriesTheRatesOfItsLocalSteps) {
  const v1::RunConfig config = Config(/*local_steps=*/3);
  const v1::StepParameters step = Method(config)->Step(RoundId(20), {}, nullptr);
  EXPECT_THAT(
      InnerRates(step.deltas()),
      ElementsAre(LearningRate(config, 60), LearningRate(config, 61), LearningRate(config, 62)));
  EXPECT_EQ(OuterRate(step.deltas()), 1.0f);
  EXPECT_EQ(step.deltas().error_decay(), 0.8f);
  EXPECT_EQ(step.kept_per_block(), static_cast<uint32_t>(kKept));
  EXPECT_EQ(AsDct(step.deltas(), *layout_), as_dct_);
  EXPECT_EQ(step.eta_bits(), 0u);
  EXPECT_EQ(CheckDeltaParameters(step.deltas(), *layout_), absl::OkStatus());
}

TEST_F(DeltaRoundsTest, CapsFollowTheMediansOfTheRecordBefore) {
  const auto method = Method(Config());
  const std::vector<float> rates = LocalRates(Config(), RoundId(20));
  const v1::StepParameters first = method->Step(RoundId(20), {}, nullptr);
  EXPECT_EQ(static_cast<uint8_t>(first.deltas().caps()[0]), DeltaCap(rates, std::nullopt));
  const uint8_t floor = DeltaCap(rates, uint8_t{0});
  const uint32_t median = floor + 5u;
  const v1::StepParameters later = method->Step(RoundId(20), {median + 1, 0u}, nullptr);
  EXPECT_EQ(static_cast<uint8_t>(later.deltas().caps()[0]), median + 2);
  EXPECT_EQ(later.deltas().caps()[1], first.deltas().caps()[1]) << "no worker had a code";
}

TEST_F(DeltaRoundsTest, RefusesUpdateAboveCap) {
  const auto method = Method(Config());
  v1::StepParameters step = method->Step(kPlace.round, {}, nullptr);
  DeltaUpdate update = Update(1);
  for (uint8_t& code : update.codes) code = std::min<uint8_t>(code, 100);
  step.mutable_deltas()->set_caps("\xC8\xC8");
  EXPECT_EQ(method->CheckUpdate(*Payload(update), kPlace, step), absl::OkStatus());
  update.codes[64] = 201;  // the first block of the second tensor
  const absl::Status refused = method->CheckUpdate(*Payload(update), kPlace, step);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("block 64: scale code 201 is above the cap 200"));
  EXPECT_LE(Payload(update)->size(), method->MaxUpdateBytes(kPlace.segment));
}

TEST_F(DeltaRoundsTest, CombinesAsTheArithmetic) {
  const DeltaUpdate a = Update(1), b = Update(2), c = Update(3);
  const SegmentResult result = Combine(Config(), {Payload(a), Payload(b), Payload(c)});
  const DeltaMeans means =
      CombineDeltas({{&a}, {&b}, {&c}}, DeltaExtents(*layout_, as_dct_, kPlace.segment),
                    {.divisor = Divisor::kSenders, .weights = 3});
  EXPECT_EQ(Decode(result), RoundToLevels(means));
  EXPECT_EQ(result.entries, means.values.size());
  EXPECT_EQ(result.sent_positions, 3u * kKept * Blocks());
  EXPECT_EQ(result.checksum, Xxh3(*result.payload));
}

TEST_F(DeltaRoundsTest, UpdatesCountByTheirWeights) {
  const DeltaUpdate a = Update(1), b = Update(2), c = Update(3);
  v1::RunConfig config = Config();
  config.set_least_senders(0.5);
  const auto result =
      Combine(config, {Payload(a), Payload(b), Payload(c)}, /*threads=*/2, {1, 15, 4});
  EXPECT_EQ(Decode(result),
            RoundToLevels(CombineDeltas(
                {{&a, 1}, {&b, 15}, {&c, 4}}, DeltaExtents(*layout_, as_dct_, kPlace.segment),
                {.divisor = Divisor::kSenders, .weights = 20, .least_senders = 10})));
  EXPECT_NE(Decode(result), Decode(Combine(config, {Payload(a), Payload(b), Payload(c)})));
}

TEST_F(DeltaRoundsTest, DivisorAndLeastSendersAreTheRuns) {
  const DeltaUpdate a = Update(1), b = Update(2);
  const auto extents = DeltaExtents(*layout_, as_dct_, kPlace.segment);
  v1::RunConfig config = Config();
  config.set_least_senders(0.75);  // of two: 1.5, rounded up
  EXPECT_EQ(Decode(Combine(config, {Payload(a), Payload(b)})),
            RoundToLevels(
                CombineDeltas({{&a}, {&b}}, extents,
                              {.divisor = Divisor::kSenders, .weights = 2, .least_senders = 2})));
  config = Config();
  config.set_divisor(v1::DIVISOR_ALL);
  config.clear_least_senders();
  EXPECT_EQ(Decode(Combine(config, {Payload(a), Payload(b)})),
            RoundToLevels(
                CombineDeltas({{&a}, {&b}}, extents, {.divisor = Divisor::kAll, .weights = 2})));
}

TEST_F(DeltaRoundsTest, TopKeepsTheLargestOfEachBlock) {
  v1::RunConfig config = Config();
  config.set_download(v1::DOWNLOAD_MODE_TOP);
  config.set_kept_votes_per_block(3);
  const SegmentResult result = Combine(config, {Payload(Update(1)), Payload(Update(2))});
  EXPECT_GT(result.entries, 3u * Blocks());
  const DeltaResult decoded = Decode(result);
  for (int64_t i = 0; i < Blocks(); ++i) EXPECT_LE(decoded.offsets[i + 1] - decoded.offsets[i], 3u);
}

// As many groups of blocks as two threads share.
class WideDeltaRoundsTest : public DeltaRoundsTest {
 protected:
  WideDeltaRoundsTest()
      : DeltaRoundsTest(*Layout::Create(
            *Manifest::Create({{"matrix", {4096, 2304}}, {"norm", {40000}}}), 16384)) {}
};

TEST_F(WideDeltaRoundsTest, IgnoresOrderAndThreads) {
  const std::vector<SharedBytes> some = {Payload(Update(1)), Payload(Update(2)),
                                         Payload(Update(3))};
  const SegmentResult alone = Combine(Config(), some);
  for (const int threads : {2, 3, 64}) {
    const SegmentResult result = Combine(Config(), {some[2], some[0], some[1]}, threads);
    EXPECT_EQ(*result.payload, *alone.payload) << threads;
    EXPECT_EQ(result.largest_codes[1], alone.largest_codes[0]);
  }
}

TEST_F(DeltaRoundsTest, TellsLargestCodesByTensor) {
  DeltaUpdate a = Update(1), b = Update(2);
  for (uint8_t& code : a.codes) code = 50;
  a.codes[10] = 60;
  a.codes[70] = 90;
  for (int64_t block = 64; block < Blocks(); ++block) {  // b sent nothing of the second tensor
    b.codes[block] = 0;
    for (int i = 0; i < kKept; ++i)
      b.signs[block * kKept + i] = 0, b.positions[block * kKept + i] = 0;
  }
  const SegmentResult result = Combine(Config(), {Payload(a), Payload(b)});
  ASSERT_EQ(result.largest_codes.size(), 2u);
  EXPECT_THAT(result.largest_codes[0], ElementsAre(60, 90));
  EXPECT_TRUE(result.largest_codes[1][0].has_value());
  EXPECT_EQ(result.largest_codes[1][1], std::nullopt);
}

TEST_F(DeltaRoundsTest, GivesEmptyBlocksOfNobody) {
  const DeltaResult result = Decode(Combine(Config(), {}));
  EXPECT_EQ(result.blocks(), Blocks());
  EXPECT_TRUE(result.positions.empty());
}

TEST_F(DeltaRoundsTest, CountsOppositeAsDisagreement) {
  const DeltaUpdate honest = Update(1);
  DeltaUpdate hostile = honest;
  for (int8_t& sign : hostile.signs) sign = static_cast<int8_t>(-sign);
  const SharedBytes good = Payload(honest), bad = Payload(hostile);
  const auto pairs = Method(Config())->Compare(kPlace, {*good, *good, *bad});
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_GT(pairs->Of(0, 1).agree, 400u);
  EXPECT_EQ(pairs->Of(0, 1).disagree, 0u);
  EXPECT_EQ(pairs->Of(2, 1), (AgreementCounts{.agree = 0, .disagree = pairs->Of(0, 1).agree}));
}

// Rounds of workers that send every position: three groups of blocks, for as many threads.
class DenseRoundsTest : public DeltaRoundsTest {
 protected:
  DenseRoundsTest()
      : DeltaRoundsTest(*Layout::Create(
            *Manifest::Create({{"matrix", {2048, 1024}}, {"norm", {300000}}}), 16384)) {}

  static v1::RunConfig Dense() {
    v1::RunConfig config = Config();
    config.set_kept_per_block(kBlockElements);
    return config;
  }
  // Some record is empty.
  DeltaUpdate All(uint64_t seed) const {
    return bench::RandomDelta(kBlockElements, Blocks(), seed);
  }
};

TEST_F(DenseRoundsTest, CombineAsTheArithmetic) {
  const std::vector<DeltaUpdate> updates = {All(1), All(2), All(3)};
  const std::vector<int> weights = {1, 15, 4};
  std::vector<SharedBytes> payloads;
  std::vector<WeightedDelta> weighted;
  for (size_t i = 0; i < updates.size(); ++i) {
    payloads.push_back(Payload(updates[i]));
    weighted.push_back({.update = &updates[i], .weight = weights[i]});
  }
  const DeltaMeans means =
      CombineDeltas(weighted, DeltaExtents(*layout_, as_dct_, kPlace.segment), {.weights = 20});
  const SegmentResult result = Combine(Dense(), payloads, 1, weights);
  EXPECT_TRUE(Decode(result, kBlockElements) == RoundToLevels(means));
  EXPECT_EQ(result.entries, means.values.size());
  EXPECT_EQ(result.sent_positions, 3u * kBlockElements * Blocks());
  EXPECT_EQ(result.checksum, Xxh3(*result.payload));
  for (const int threads : {2, 64}) {
    const SegmentResult same = Combine(Dense(), {payloads[2], payloads[0], payloads[1]}, threads,
                                       {weights[2], weights[0], weights[1]});
    EXPECT_TRUE(*same.payload == *result.payload) << threads;
    EXPECT_EQ(same.entries, result.entries);
    EXPECT_EQ(same.largest_codes[1], result.largest_codes[0]);
  }
}

TEST_F(DenseRoundsTest, CheckTheCap) {
  const auto method = Method(Dense());
  v1::StepParameters step = method->Step(kPlace.round, {}, nullptr);
  DeltaUpdate update = All(1);
  for (uint8_t& code : update.codes) code = std::min<uint8_t>(code, 100);
  step.mutable_deltas()->set_caps("\xC8\xC8");
  EXPECT_EQ(method->CheckUpdate(*Payload(update), kPlace, step), absl::OkStatus());
  EXPECT_EQ(Payload(update)->size(), method->MaxUpdateBytes(kPlace.segment));
  update.codes[64] = 201;
  EXPECT_EQ(method->CheckUpdate(*Payload(update), kPlace, step),
            absl::InvalidArgumentError("block 64: scale code 201 is above the cap 200"));
}

TEST_F(DenseRoundsTest, CountAgreementAsTheOthers) {
  const std::vector<DeltaUpdate> updates = {All(1), All(2), All(3)};
  const auto extents = DeltaExtents(*layout_, as_dct_, kPlace.segment);
  std::vector<SharedBytes> payloads;
  for (const DeltaUpdate& update : updates) payloads.push_back(Payload(update));
  PairCounts expected(updates.size());
  for (int64_t block = 0; block < Blocks(); ++block) {
    std::vector<SentSigns> sent;
    for (const DeltaUpdate& update : updates) {
      sent.push_back(update.empty(block) ? SentSigns()
                                         : SentSigns{.positions = update.PositionsOf(block),
                                                     .signs = update.SignsOf(block)});
    }
    expected.AddBlock(extents[block], sent);
  }
  const auto pairs = Method(Dense())->Compare(kPlace, {*payloads[0], *payloads[1], *payloads[2]});
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)})
    EXPECT_EQ(pairs->Of(a, b), expected.Of(a, b)) << a << " " << b;
}

TEST_F(DenseRoundsTest, CallBadPayloadDataLoss) {
  const auto method = Method(Dense());
  const SharedBytes good = Payload(All(1)), bad = std::make_shared<const std::string>("no update");
  const absl::Status status = method->Combine(kPlace, {{good}, {bad}}, 1, clock_).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("payload 1: "));
  EXPECT_TRUE(absl::IsDataLoss(method->Compare(kPlace, {*bad}).status()));
}

TEST_F(DenseRoundsTest, RefuseResultsThatAreCut) {
  v1::RunConfig config = Dense();
  config.set_download(v1::DOWNLOAD_MODE_TOP);
  config.set_kept_votes_per_block(3);
  const absl::Status status = CompleteRunConfig(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"top\" is not supported with kept_per_block 4096"));
}

TEST_F(DenseRoundsTest, RefuseSegmentsOfMoreEntriesThanOffsetsCount) {
  v1::RunConfig config = Dense();
  config.set_segment_blocks(1 << 20);
  EXPECT_THAT(std::string(CompleteRunConfig(config).status().message()),
              HasSubstr("1048576 is above 1048575, the most with kept_per_block 4096"));
  config.set_segment_blocks((1 << 20) - 1);
  EXPECT_EQ(CompleteRunConfig(config).status(), absl::OkStatus());
}

TEST_F(DeltaRoundsTest, CallsBadPayloadDataLoss) {
  const auto method = Method(Config());
  const SharedBytes bad = std::make_shared<const std::string>("not an update");
  EXPECT_TRUE(absl::IsDataLoss(method->Combine(kPlace, {{bad}}, 1, clock_).status()));
  EXPECT_TRUE(absl::IsDataLoss(method->Compare(kPlace, {*bad}).status()));
}

TEST(DeltasTest, NeedTheModelOfTheLayout) {
  const auto layout = std::make_shared<const Layout>(TwoTensors());
  EXPECT_EQ(Deltas().MakeRounds(Config(), layout, "{}").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
