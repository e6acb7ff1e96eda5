#include "bench/convergence/deltas.h"

#include <cmath>
#include <string>

#include "bench/convergence/baseline.h"
#include "bench/convergence/delta_bytes.h"
#include "bench/local/local_aggregator.h"
#include "common/method/deltas/scale.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "worker/model/model.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;

TEST(DeltasSettingsTest, RefusesUnknownAndOutOfRange) {
  EXPECT_EQ(ParseDeltasSettings("{}")->k, 32);
  EXPECT_EQ(ParseDeltasSettings(R"({"k": 8, "inner": "adamw"})")->k, 8);
  const auto fault_of = [](const std::string& json) {
    const auto settings = ParseDeltasSettings(json);
    EXPECT_TRUE(absl::IsInvalidArgument(settings.status())) << json;
    return std::string(settings.status().message());
  };
  EXPECT_THAT(fault_of("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(fault_of(R"({"K": 8})"), HasSubstr("K: no such setting"));
  EXPECT_THAT(fault_of(R"({"k": 0})"), HasSubstr("k: 0 is outside 1..4096"));
  EXPECT_THAT(fault_of(R"({"k": "8"})"), HasSubstr("k: of another type"));
  EXPECT_THAT(fault_of(R"({"divisor": "none"})"), HasSubstr("'none' is none of senders, all"));
  EXPECT_THAT(fault_of(R"({"window": 2, "overlap": 3})"), HasSubstr("overlap: more than"));
  EXPECT_THAT(fault_of(R"({"overlap": 1, "stateless": true})"), HasSubstr("stateless: "));
  EXPECT_THAT(fault_of(R"({"worker_steps": [1, 0]})"), HasSubstr("worker_steps: "));
}

class DeltasTest : public ::testing::Test {
 protected:
  DeltasTest() { SetTorchThreads(1); }

  server::RunIdentity Run(int workers, uint64_t steps = 30) const {
    v1::RunConfig config = tiny_.Config(workers, steps, /*overlap=*/0);
    config.set_peak_learning_rate(0.01);
    config.set_segment_blocks(kDefaultSegmentBlocks);
    return *server::MakeLocalRun(config, tiny_.checkpoint_dir(), tiny_.File("initial.safetensors"));
  }
  // With AdamW inside: under a sanitizer Muon's products take most of a run.
  DeltasLearned Learn(const std::string& json, int workers = 4, int threads = 1) const {
    DeltasSettings settings = *ParseDeltasSettings(json);
    settings.inner = "adamw";
    return LearnAs(settings, workers, threads);
  }
  DeltasLearned LearnAs(const DeltasSettings& settings, int workers, int threads = 1) const {
    const server::RunIdentity run = Run(workers);
    const TokenSource tokens = *OpenTokens(tiny_.text_path(), TokenFormat::kAuto);
    auto learned = RunDeltas(run, tokens, settings, threads);
    EXPECT_TRUE(learned.ok()) << learned.status();
    return *std::move(learned);
  }
  static double LossOf(const Curve& curve) { return curve.point(curve.points() - 1).held_out_loss; }
  static double Gain(const Curve& curve) { return curve.point(0).held_out_loss - LossOf(curve); }
  double Learned(const std::string& json) const { return LossOf(Learn(json).curve); }

  const testing::TinyRun tiny_;
};

TEST_F(DeltasTest, LearnsWithEveryInnerOptimizerAndWindow) {
  for (const char* json :
       {R"({"k": 16})", R"({"k": 16, "inner": "adamw"})", R"({"k": 16, "overlap": 1})",
        R"({"k": 32, "window": 5})", R"({"k": 32, "window": 7, "overlap": 3})",
        R"({"k": 16, "divisor": "all", "alpha": 2, "rho": 0.5, "keep": 32})"})
    EXPECT_GT(Gain(LearnAs(*ParseDeltasSettings(json), 2).curve), 0.5) << json;
}

TEST_F(DeltasTest, ThreadsDoNotMatter) {
  const DeltasSettings settings = *ParseDeltasSettings(R"({"k": 16, "window": 3})");
  EXPECT_EQ(LossOf(LearnAs(settings, 4, 1).curve), LossOf(LearnAs(settings, 4, 3).curve));
}

// A clip that never holds takes the run from the real system's arithmetic to that of messages.
TEST_F(DeltasTest, MessagesGiveWhatTheRealArithmeticGives) {
  const double real = Learned(R"({"k": 16, "window": 3, "beta": 0.9})");
  EXPECT_NEAR(Learned(R"({"k": 16, "window": 3, "beta": 0.9, "norm_clip": 1000})"), real, 1e-3);
}

TEST_F(DeltasTest, EverythingOfOneWorkerIsTheAllReduceOfOneWorker) {
  const server::RunIdentity run = Run(1);
  const TokenSource tokens = *OpenTokens(tiny_.text_path(), TokenFormat::kAuto);
  const double reduced = LossOf(*RunBaseline(run, tokens, {.method = BaselineMethod::kAdamW}));
  const DeltasLearned dense =
      Learn(R"({"k": 4096, "values": "float", "levels": 0, "beta": 0, "cap_growth": 256})", 1);
  EXPECT_NEAR(LossOf(dense.curve), reduced, 1e-3);
}

TEST_F(DeltasTest, LearnsWithVariants) {
  for (const char* json :
       {R"({"values": "float"})", R"({"values": "two"})", R"({"values": "tensor"})",
        R"({"transform": "all"})", R"({"transform": "none"})", R"({"levels": 1})",
        R"({"levels": 0})", R"({"feedback": "included"})", R"({"feedback": "cancelled"})",
        R"({"nesterov": 0.5, "alpha": 0.5})", R"({"decay_in_update": true})", R"({"norm_clip": 1})",
        R"({"alpha_end": 0.65})", R"({"stateless": true})"})
    EXPECT_GT(Gain(Learn(json, 2).curve), 0.4) << json;
}

TEST_F(DeltasTest, WeighsUpdatesByStepsOfWorker) {
  const std::string steps = R"("window": 4, "worker_steps": [1, 2, 4, 4])";
  const double weighted = Learned("{" + steps + "}");
  EXPECT_NE(Learned("{" + steps + R"(, "equal_weights": true})"), weighted);
  EXPECT_EQ(Learned(R"({"window": 4, "worker_steps": [4, 4, 4, 4]})"), Learned(R"({"window": 4})"))
      << "fifteen each";
  const auto refused = RunDeltas(Run(4), *OpenTokens(tiny_.text_path(), TokenFormat::kAuto),
                                 *ParseDeltasSettings(R"({"worker_steps": [1, 1]})"), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
}

TEST_F(DeltasTest, UpdatesThatAllMissTheirRoundMoveNothing) {
  const DeltasLearned learned = Learn(R"({"miss": 1})");
  EXPECT_EQ(LossOf(learned.curve), learned.curve.point(0).held_out_loss);
  EXPECT_EQ(learned.curve.point(learned.curve.points() - 1).sent_bytes, 0u);
}

TEST_F(DeltasTest, WorkersThatComeLateDoNothingBefore) {
  EXPECT_EQ(Learned(R"({"first_round": [0, 100, 100, 100], "rho": 0, "k": 16})"),
            Learned(R"({"first_round": [0, 99, 99, 99], "rho": 0, "k": 16})"));
  const auto refused = RunDeltas(Run(4), *OpenTokens(tiny_.text_path(), TokenFormat::kAuto),
                                 *ParseDeltasSettings(R"({"first_round": [0, 1]})"), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
}

TEST_F(DeltasTest, SuspectsHostileWorkerOnly) {
  const DeltasLearned learned = Learn(R"({"attack": "inverted", "attack_multiple": 0, "k": 64})");
  EXPECT_TRUE(learned.suspected.contains(3));
  EXPECT_EQ(learned.suspected.size(), 1u);
  EXPECT_TRUE(Learn(R"({"k": 64})").suspected.empty());
}

// What a hostile worker can still do (docs/security.md, "Threats").
TEST_F(DeltasTest, MissesInversionOfAThird) {
  const DeltasLearned learned = Learn(R"({"attack": "third_inverted_cap", "k": 64})");
  EXPECT_TRUE(learned.suspected.empty());
  EXPECT_NE(LossOf(learned.curve), Learned(R"({"k": 64})"));
}

TEST_F(DeltasTest, ChangesWithEachBackwardWorker) {
  const double one = Learned(R"({"backwards": 1, "k": 64})");
  EXPECT_NE(one, Learned(R"({"k": 64})"));
  EXPECT_NE(one, Learned(R"({"backwards": 2, "k": 64})"));
}

TEST_F(DeltasTest, BytesFollowWhatIsSent) {
  const auto sent = [&](const std::string& settings) {
    const Curve curve = Learn(settings).curve;
    return curve.point(curve.points() - 1).sent_bytes;
  };
  const uint64_t every_step = sent(R"({"k": 16})");
  EXPECT_GT(every_step, 0u);
  EXPECT_NEAR(static_cast<double>(sent(R"({"k": 16, "window": 5})")),
              static_cast<double>(every_step) / 5, static_cast<double>(every_step) / 20);
  EXPECT_GT(sent(R"({"k": 16, "values": "float"})"), every_step);
}

TEST(AdaptiveCostTest, ChargesLessForRepeats) {
  AdaptiveCost cost;
  EXPECT_NEAR(cost.Add(5), 9, 1e-9) << "nothing is known: 512 numbers";
  for (int i = 0; i < 1000; ++i) cost.Add(5);
  EXPECT_LT(cost.Add(5), 0.1);
  EXPECT_GT(cost.Add(6), 10);
}

}  // namespace
}  // namespace distro::worker
