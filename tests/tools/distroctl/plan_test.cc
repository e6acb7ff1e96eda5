// The figures of "A Preliminary Report on DisTrO", from its inputs; and those of a model of its
// layout from config.json.
#include "tools/distroctl/plan.h"

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::tools {
namespace {

using ::testing::HasSubstr;

constexpr double kReportGradient = 2.4e9;  // 1.2 B parameters, 16 bits each
constexpr double kReportUpdate = 2.8e6;
constexpr int kReportNodes = 32;

// Within the report's last digit.
void ExpectAbout(double value, double figure, double digit) {
  EXPECT_NEAR(value, figure, digit / 2 + 1e-12);
}

TEST(PlanFormulasTest, GiveTheReportsFigures) {
  ExpectAbout(GradientBytes(1.2e9), kReportGradient, 1e8);
  ExpectAbout(ReceivedFromAll(kReportGradient, kReportNodes), 74.4e9, 0.1e9);
  ExpectAbout(ReceivedFromAll(kReportUpdate, kReportNodes), 86.8e6, 0.1e6);
  ExpectAbout(kReportGradient / kReportUpdate, 857, 1);
  ExpectAbout(TransferSeconds(kReportUpdate, 10e6), 2.24, 0.01);
  ExpectAbout(TransferSeconds(86.8e6, 100e6), 6.94, 0.01);
}

TEST(PlanFormulasTest, DataParallelismMovesWhatZeroSays) {
  EXPECT_DOUBLE_EQ(RingAllReduceBytes(1000, 4), 1500);
  EXPECT_DOUBLE_EQ(Zero3Bytes(1000, 4), 1.5 * RingAllReduceBytes(1000, 4));
  EXPECT_DOUBLE_EQ(PipelineBubble(4, 13), 3.0 / 16);
  EXPECT_DOUBLE_EQ(PipelineBubble(1, 8), 0);
}

TEST(PlanFormulasTest, PayloadsAreTheEntropyOfPlacesAndSigns) {
  EXPECT_NEAR(EntropyBytes(1, 1), (12.0 + 1) / 8, 1e-9);
  EXPECT_NEAR(EntropyBytes(1, 4096), 4096.0 / 8, 1e-6) << "all places: signs only";
  EXPECT_NEAR(LosslessResultBytes(294144, 32, 4), 35e6, 0.3e6);
  EXPECT_NEAR(EntropyBytes(294144, 32), 11.0e6, 0.05e6);
}

PlanOptions Report1B2() {
  PlanOptions options;
  options.config = DISTRO_SOURCE_DIR "/examples/llama_1b2/config.json";
  return options;
}

TEST(PlanTest, AModelOfTheReportsLayout) {
  PlanOptions options = Report1B2();
  options.kept_votes = 32;
  const auto plan = MakePlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const nlohmann::json& json = plan->json;
  EXPECT_NEAR(json["parameters"].get<double>(), 1.2e9, 0.01e9);
  EXPECT_NEAR(json["update_bytes"].get<double>(), 1.77e6, 0.01e6);
  EXPECT_NEAR(json["result_bytes"].get<double>(), 11.0e6, 0.05e6);
  EXPECT_NEAR(json["upload_seconds"].get<double>(), 1.41, 0.02);
  EXPECT_NEAR(json["round_seconds"].get<double>(), 10, 1e-9) << "hidden behind 10 s of compute";
  EXPECT_NEAR(json["round_seconds_overlap_0"].get<double>(), 12.3, 0.1);
  EXPECT_NEAR(json["aggregator_sent_bytes_a_day"].get<double>(), 3.0e12, 0.05e12);
  EXPECT_TRUE(plan->verdict.ok());
}

TEST(PlanTest, LosslessTrafficOfADay) {
  const auto plan = MakePlan(Report1B2());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NEAR(plan->json["aggregator_sent_bytes_a_day"].get<double>(), 9.7e12, 0.1e12);
  EXPECT_NEAR(plan->json["aggregator_disk_bytes_without_archiver"].get<double>(), 875e9, 3e9);
}

// Memory is what worker/plan/memory_plan.h says, of which the worker's own tests know how it
// measures.
TEST(PlanTest, ShardingMakesMemorySmallerInThisOrder) {
  PlanOptions options = Report1B2();
  options.gpus = 8;
  const auto plan = MakePlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  double before = 1e18;
  for (const nlohmann::json& memory : plan->json["memory"]) {
    EXPECT_LT(memory["total_bytes"].get<double>(), before) << memory["strategy"];
    before = memory["total_bytes"].get<double>();
  }
  const nlohmann::json& unsharded = plan->json["memory"][0];
  const double parameters = plan->json["parameters"].get<double>();
  const double padding = 1e-4 * parameters;
  EXPECT_NEAR(unsharded["parameters_bytes"].get<double>(), 4 * parameters, padding);
  const nlohmann::json& sharded = plan->json["memory"][3];
  EXPECT_EQ(sharded["strategy"], "full_shard");
  // A rank has whole rows of blocks of every unit: the largest shard is a little above an eighth.
  EXPECT_NEAR(sharded["parameters_bytes"].get<double>(), 4 * parameters / 8, 0.02 * parameters);
  EXPECT_NEAR(sharded["momentum_bytes"].get<double>(), (4 + 6 * 4.0 / 4096) * parameters / 8,
              0.02 * parameters);
}

TEST(PlanTest, TheWorkersFlagsMakeMemorySmaller) {
  const auto total = [](const PlanOptions& options) {
    return MakePlan(options).value().json["memory"][0]["total_bytes"].get<double>();
  };
  PlanOptions options = Report1B2();
  const double plain = total(options);
  options.overlap = false;
  const double without_lookahead = total(options);
  EXPECT_NEAR(plain - without_lookahead, 4 * 1.205e9, 0.001e9) << "the lookahead copy";
  options.activation_checkpointing = 1;
  EXPECT_LT(total(options), without_lookahead);
  options.param_dtype = "f64";
  EXPECT_THAT(std::string(MakePlan(options).status().message()), HasSubstr("--param_dtype"));
}

TEST(PlanTest, SaysWhenNoStrategyFits) {
  PlanOptions options = Report1B2();
  options.gpu_memory_gb = 2;
  const auto plan = MakePlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->verdict.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(plan->text, HasSubstr("full_shard"));
}

TEST(PlanTest, NamesTheFlagThatIsWrong) {
  PlanOptions options = Report1B2();
  options.up_mbps = 0;
  EXPECT_THAT(std::string(MakePlan(options).status().message()), HasSubstr("--up_mbps"));
  EXPECT_THAT(std::string(MakePlan({}).status().message()), HasSubstr("--config"));
}

}  // namespace
}  // namespace distro::tools
