// A worker of a run of deltas: its local steps, and rounds that close before them. The run is a
// LocalAggregator's; an exchange before it changes one thing.
#include <bit>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/run/sample_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/local_aggregator.h"
#include "tests/worker/train/recording_exchange.h"
#include "worker/data/token_file.h"
#include "worker/model/model.h"
#include "worker/node/node.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {
namespace {

using ::testing::IsEmpty;
using testing::TinyRun;
using testing::TrainWorker;
using testing::WorkerResult;

constexpr int kMicroBatch = 2, kSamples = 4;  // of a step

// The first round closes without this worker, once it has taken its steps: when it looks for events
// for the second time, before it sends.
class ClosesTooEarly final : public RecordingExchange {
 public:
  explicit ClosesTooEarly(server::LocalAggregator* aggregator)
      : RecordingExchange(aggregator),
        state_hash_(aggregator->run().initial_snapshot.state_hash()) {}
  bool Ready() override {
    if (rounds.size() == 1 && ++looks_ == 2) {
      inner_.Upload({.round = rounds[0].opened.round,
                     .state_hash = state_hash_,
                     .abstain = true,
                     .payloads = {}});
    }
    return inner_.Ready();
  }

 private:
  const uint64_t state_hash_;
  int looks_ = 0;
};

// Round 1 is announced several times: changed, and at last as it is. Between two of these the
// worker takes its steps.
class AnnouncesAgain final : public ForwardingExchange {
 public:
  using Change = std::function<void(v1::RoundOpen*)>;
  AnnouncesAgain(server::LocalAggregator* aggregator, std::vector<Change> changes)
      : ForwardingExchange(aggregator), changes_(std::move(changes)) {}

  absl::StatusOr<RoundEvent> Next() override {
    looks_ = 0;
    if (!round_.has_value()) {
      absl::StatusOr<RoundEvent> event = inner_.Next();
      const auto* const opened = event.ok() ? std::get_if<OpenedRound>(&*event) : nullptr;
      if (opened == nullptr || opened->round != RoundId(1)) return event;
      round_ = *opened;
    }
    if (announced_ > changes_.size()) return inner_.Next();
    OpenedRound opened = *round_;
    if (announced_ < changes_.size()) changes_[announced_](&opened.open);
    ++announced_;
    return opened;
  }
  bool Ready() override {
    if (round_.has_value() && announced_ <= changes_.size()) return ++looks_ > 1;
    return inner_.Ready();
  }

 private:
  const std::vector<Change> changes_;
  std::optional<OpenedRound> round_;
  size_t announced_ = 0;
  int looks_ = 0;
};

// The same worker by hand, with a node of its own.
class ByHand {
 public:
  ByHand(const TinyRun& tiny, const server::RunIdentity& run)
      : layout_(run.layout),
        tokens_(*OpenTokens(tiny.text_path(), TokenFormat::kAuto)),
        samples_(*SampleReader::Create(&tokens_, run.config)),
        architecture_(*ParseModelConfig(run.model_config_json)),
        model_(*Model::Create(architecture_, *layout_)),
        rule_(RuleOf(run.config, layout_.get(), *architecture_)),
        node_(*Node::Create({.ranks = 1}, {.layout = layout_.get(),
                                           .model = model_.get(),
                                           .rule = &rule_,
                                           .copy = true,
                                           .micro_batch_samples = kMicroBatch,
                                           .sequence_length = 16})) {
    EXPECT_TRUE(node_->Load(run.initial_snapshot_path, RoundId(0), 0).ok());
  }

  // Step h is over samples [4 h, 4 h + 4) of the slot. `steps`: 0: all.
  std::vector<SharedBytes> TakeRound(const OpenedRound& opened, int steps = 0) {
    const v1::StepParameters& step = opened.open.step();
    if (steps == 0) steps = step.deltas().inner_rate_bits_size();
    EXPECT_TRUE(node_->BeginLocalSteps().ok());
    for (int h = 0; h < steps; ++h) {
      for (int i = 0; i < kSamples; i += kMicroBatch) {
        std::vector<int32_t> tokens;
        const v1::Slot part = PartOf(opened.open.slots(0), kSamples * h + i, kMicroBatch);
        EXPECT_TRUE(samples_.ReadTraining(part, &tokens).ok());
        const TokenBatch batch = {.tokens = tokens, .sequences = kMicroBatch};
        EXPECT_TRUE(node_->GradientRound({batch}, GradientAt::kCopy, /*first=*/i == 0).ok());
      }
      const absl::StatusOr<double> norm = node_->FinishGradient(kSamples / kMicroBatch);
      EXPECT_TRUE(node_->TakeStep(step, h, *norm).ok());
    }
    return *node_->Compress(opened.round, step);
  }
  Node& node() { return *node_; }
  std::vector<uint32_t> ErrorBits() {
    const absl::StatusOr<Node::Kept> kept = node_->kept();
    std::vector<uint32_t> bits;
    for (const auto& pieces : kept->elements[0]) {
      for (const float value : pieces[0]) bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return bits;
  }

 private:
  const std::shared_ptr<const Layout> layout_;
  const TokenSource tokens_;
  const SampleReader samples_;
  const std::shared_ptr<const Architecture> architecture_;
  const std::unique_ptr<Model> model_;
  const UpdateRuleKind rule_;
  const std::unique_ptr<Node> node_;
};

std::vector<std::string> BytesOf(const std::vector<SharedBytes>& payloads) {
  std::vector<std::string> bytes;
  for (const SharedBytes& payload : payloads) bytes.push_back(*payload);
  return bytes;
}

class LocalStepsTest : public ::testing::Test {
 protected:
  server::RunIdentity MakeRun(uint32_t local_steps, uint64_t rounds = 2) const {
    return LocalRunOf(tiny_, tiny_.DeltaConfig(1, rounds, local_steps));
  }
  WorkerResult Train(Exchange* exchange) const {
    return TrainWorker(tiny_,
                       {.name = "w0", .exchange = exchange, .micro_batch_samples = kMicroBatch});
  }

  const TinyRun tiny_;
};

TEST_F(LocalStepsTest, ReadConsecutiveEqualPartsOfTheSlot) {
  for (const uint32_t local_steps : {1, 3}) {
    const server::RunIdentity run = MakeRun(local_steps);
    const auto aggregator = *server::LocalAggregator::Create(run);
    RecordingExchange exchange(aggregator.get());
    const WorkerResult result = Train(&exchange);
    ASSERT_TRUE(result.status.ok()) << result.status;
    ByHand by_hand(tiny_, run);
    ASSERT_EQ(exchange.rounds.size(), 2u);
    for (const RecordingExchange::Seen& round : exchange.rounds) {
      EXPECT_EQ(round.opened.open.slots(0).samples(), kSamples * local_steps);
      ASSERT_EQ(round.uploads.size(), 1u);
      EXPECT_EQ(BytesOf(by_hand.TakeRound(round.opened)), BytesOf(round.uploads[0].payloads));
      ASSERT_TRUE(by_hand.node().Apply(round.committed).ok());
      ASSERT_TRUE(by_hand.node().Feedback(round.committed, 0).ok());
    }
    EXPECT_EQ(result.momentum_bits, by_hand.ErrorBits());
    EXPECT_EQ(result.summary.state_hash, by_hand.node().StateHash());
    EXPECT_EQ(result.summary.tokens, 2u * kSamples * local_steps * 16);
  }
}

// In the first round the window is over before the second step, later it is long enough; what the
// first round left of its samples comes in the third.
TEST_F(LocalStepsTest, TakeAsManyAsFitIntoTheWindow) {
  v1::RunConfig config = tiny_.DeltaConfig(1, /*rounds=*/3, /*local_steps=*/3);
  config.mutable_round_window()->set_seconds(3600);
  const server::RunIdentity run = LocalRunOf(tiny_, config);
  const auto aggregator = *server::LocalAggregator::Create(run);
  RecordingExchange exchange(aggregator.get());
  exchange.change_open = [](RoundId round, v1::RoundOpen* open) {
    if (round == RoundId(0)) open->mutable_window()->set_seconds(0);
  };
  const WorkerResult result = Train(&exchange);
  ASSERT_TRUE(result.status.ok()) << result.status;
  ByHand by_hand(tiny_, run);
  ASSERT_EQ(exchange.rounds.size(), 3u);
  for (size_t t = 0; t < 3; ++t) {
    const RecordingExchange::Seen& round = exchange.rounds[t];
    const int steps = t == 0 ? 1 : 3;
    ASSERT_EQ(round.uploads.size(), 1u);
    EXPECT_EQ(round.uploads[0].local_steps, static_cast<uint32_t>(steps)) << t;
    EXPECT_EQ(BytesOf(by_hand.TakeRound(round.opened, steps)), BytesOf(round.uploads[0].payloads));
    ASSERT_TRUE(by_hand.node().Apply(round.committed).ok());
    ASSERT_TRUE(by_hand.node().Feedback(round.committed, 0).ok());
    const v1::Member& member = round.committed.header->members(0);
    EXPECT_EQ(member.local_steps(), static_cast<uint32_t>(steps));
    EXPECT_EQ(member.weight(), t == 0 ? 5u : 15u);
  }
  const v1::Slot& third = exchange.rounds[2].opened.open.slots(0);
  EXPECT_EQ(third.first_sample(), uint64_t{kSamples});
  EXPECT_EQ(third.samples(), 2u * kSamples);
  ASSERT_EQ(third.more_size(), 1);
  EXPECT_EQ(third.more(0).first_sample(), 6u * kSamples);
  EXPECT_EQ(result.summary.tokens, (1u + 3 + 3) * kSamples * 16);
  EXPECT_EQ(result.summary.state_hash, by_hand.node().StateHash());
}

// As after a restart of the aggregator.
TEST_F(LocalStepsTest, StepsOfASlotThatIsAnothersNowAreTakenAgainOnTheOwnOne) {
  const auto other = [](v1::RoundOpen* open) { open->mutable_slots(0)->set_first_sample(1000); };
  const auto same = [](v1::RoundOpen*) {};
  const auto none = [](v1::RoundOpen* open) { open->clear_slots(); };
  struct Case {
    std::vector<AnnouncesAgain::Change> changes;
    uint64_t steps;
  };
  for (const Case& c : {Case{{}, 6}, Case{{same}, 6}, Case{{other}, 8}, Case{{same, none}, 8}}) {
    const auto aggregator = Aggregate(tiny_, tiny_.DeltaConfig(1, /*rounds=*/3, /*local_steps=*/2));
    AnnouncesAgain exchange(aggregator.get(), c.changes);
    const WorkerResult result = Train(&exchange);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.summary.deltas->inner_steps, c.steps);
    EXPECT_EQ(result.summary.updates_sent, 3u);
    EXPECT_EQ(result.summary.updates_excluded, 0u);
  }
}

// With local data a slot only counts samples: what was taken is the worker's own.
TEST_F(LocalStepsTest, WithLocalDataAnotherSlotOfAsManySamplesIsTheSame) {
  v1::RunConfig config = tiny_.DeltaConfig(1, /*rounds=*/3, /*local_steps=*/2);
  config.set_data(v1::DATA_LOCAL);
  const auto aggregator = Aggregate(tiny_, config);
  AnnouncesAgain exchange(aggregator.get(), {[](v1::RoundOpen* open) {
                            open->mutable_slots(0)->set_first_sample(1000);
                          }});
  const WorkerResult result = TrainWorker(tiny_, {.name = "w0",
                                                  .exchange = &exchange,
                                                  .micro_batch_samples = kMicroBatch,
                                                  .public_data = tiny_.text_path()});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.deltas->inner_steps, 6u);
  EXPECT_EQ(result.summary.updates_sent, 3u);
}

TEST_F(LocalStepsTest, RefuseOpenWithoutWindow) {
  v1::RunConfig config = tiny_.DeltaConfig(1, /*rounds=*/2, /*local_steps=*/2);
  config.mutable_round_window()->set_seconds(3600);
  const auto aggregator = Aggregate(tiny_, config);
  RecordingExchange exchange(aggregator.get());
  exchange.change_open = [](RoundId, v1::RoundOpen* open) { open->clear_window(); };
  const WorkerResult result = Train(&exchange);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument) << result.status;
}

TEST_F(LocalStepsTest, KeepLateStepsInBuffer) {
  const server::RunIdentity run = MakeRun(2);
  const auto aggregator = *server::LocalAggregator::Create(run);
  ClosesTooEarly exchange(aggregator.get());
  const WorkerResult result = Train(&exchange);
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(exchange.rounds.size(), 2u);
  EXPECT_THAT(exchange.rounds[0].uploads, IsEmpty());
  ASSERT_EQ(exchange.rounds[1].uploads.size(), 1u);
  EXPECT_EQ(result.summary.updates_sent, 1u);
  EXPECT_EQ(result.summary.updates_excluded, 0u);
  EXPECT_EQ(result.summary.nonfinite_steps, 0u);
  EXPECT_EQ(result.summary.deltas->inner_steps, 4u);

  // e has what the steps did, decays once a round, and nothing of the first update comes back.
  ByHand by_hand(tiny_, run);
  by_hand.TakeRound(exchange.rounds[0].opened);
  by_hand.node().ForgetPending();
  ASSERT_TRUE(by_hand.node().Apply(exchange.rounds[0].committed).ok());
  EXPECT_GT(*by_hand.node().MomentumNorm(), 0);
  EXPECT_EQ(BytesOf(by_hand.TakeRound(exchange.rounds[1].opened)),
            BytesOf(exchange.rounds[1].uploads[0].payloads));
  ASSERT_TRUE(by_hand.node().Apply(exchange.rounds[1].committed).ok());
  ASSERT_TRUE(by_hand.node().Feedback(exchange.rounds[1].committed, 0).ok());
  EXPECT_EQ(result.momentum_bits, by_hand.ErrorBits());
}

// After the first step the copy's values overflow the forward pass.
TEST_F(LocalStepsTest, SkipNonFinite) {
  const auto aggregator = *server::LocalAggregator::Create(MakeRun(3));
  RecordingExchange exchange(aggregator.get());
  exchange.change_open = [](RoundId round, v1::RoundOpen* open) {
    if (round == RoundId(0)) SetRates({1e30f, 0.01f, 0.01f}, open);
  };
  const WorkerResult result = Train(&exchange);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.deltas->inner_steps, 1u + 3u);
  EXPECT_EQ(result.summary.updates_sent, 2u);
  EXPECT_EQ(result.summary.nonfinite_steps, 2u);
}

// In the second round no step is finite, for the parameters are not; or the copy is not finite
// after the only step that was. Either way the buffer is as the first round left it.
TEST_F(LocalStepsTest, WithoutAFiniteStepTheWorkerAbstains) {
  std::vector<WorkerResult> results;
  for (const bool parameters : {true, false}) {
    const auto aggregator = *server::LocalAggregator::Create(MakeRun(2));
    RecordingExchange exchange(aggregator.get());
    if (parameters) {
      exchange.change_record = [](v1::RoundHeader* header) {
        header->mutable_step()->mutable_deltas()->set_outer_rate_bits(
            std::bit_cast<uint32_t>(1e38f));
      };
    } else {
      exchange.change_open = [](RoundId round, v1::RoundOpen* open) {
        if (round == RoundId(1)) SetRates({std::numeric_limits<float>::infinity(), 0.01f}, open);
      };
    }
    const WorkerResult& result = results.emplace_back(Train(&exchange));
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.summary.updates_sent, 1u);
    EXPECT_EQ(result.summary.nonfinite_steps, parameters ? 2u : 1u);
    EXPECT_EQ(result.summary.deltas->inner_steps, parameters ? 2u : 3u);
    ASSERT_EQ(exchange.rounds[1].uploads.size(), 1u);
    EXPECT_TRUE(exchange.rounds[1].uploads[0].abstain);
    EXPECT_THAT(exchange.rounds[1].uploads[0].payloads, IsEmpty());
    EXPECT_TRUE(exchange.rounds[1].committed.header->members(0).abstained());
  }
  EXPECT_EQ(results[0].momentum_bits, results[1].momentum_bits);
  EXPECT_NE(results[0].momentum_bits, std::vector<uint32_t>(results[0].momentum_bits.size(), 0u));
}

}  // namespace
}  // namespace distro::worker
