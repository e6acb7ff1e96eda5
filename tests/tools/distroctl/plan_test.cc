// The figures of "A Preliminary Report on DisTrO", from its inputs; and those of a model of its
// layout from config.json.
#include "tools/distroctl/plan.h"

#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/scratch_folder.h"
#include "tools/distroctl/plan_cluster.h"
#include "tools/distroctl/plan_learning.h"
#include "tools/distroctl/plan_report.h"
#include "worker/plan/memory_plan.h"

namespace distro::tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
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
  EXPECT_NEAR(EntropyBytes(1, 1, kSignsBits), (12.0 + 1) / 8, 1e-9);
  EXPECT_NEAR(EntropyBytes(1, 4096, kSignsBits), 4096.0 / 8, 1e-6) << "all places: signs only";
  EXPECT_NEAR(MostBytes(294144, 32 * 4, kSignsBits), 35e6, 0.3e6);
  EXPECT_NEAR(EntropyBytes(294144, 32, kSignsBits), 11.0e6, 0.05e6);
}

TEST(PlanFormulasTest, MoreEntriesThanABlockHasRoomForDoNotMakeTheMostSmaller) {
  double before = 0;
  for (const int entries : {1, 256, 1024, 2048, 2900, 4096, 32768}) {
    const double most = MostBytes(1, entries, kDeltaResultBits);
    EXPECT_GE(most, before) << entries;
    before = most;
  }
  for (int entries = 1; entries <= 4096; ++entries)
    EXPECT_LE(EntropyBytes(1, entries, kDeltaResultBits), before + 1e-3) << entries;
}

// Bits a block as tests/common/method/deltas/payload_test.cc measures them:
// docs/decisions/0019, and for K = 32 and results the table of docs/payload_format.md.
TEST(PlanFormulasTest, PayloadsOfDeltasAreWithinThreeHundredthsOfMeasuredOnes) {
  const auto bits = [](int k) { return 8 * EntropyBytes(1, k, kDeltaUpdateBits); };
  EXPECT_NEAR(bits(4), 51.7, 0.03 * 51.7);
  EXPECT_NEAR(bits(8), 93.3, 0.03 * 93.3);
  EXPECT_NEAR(bits(32), 32 * 9.57, 0.03 * 32 * 9.57);
}

// What a worker of eight received a round of a model of 76 blocks, bench/convergence/README.md,
// "Every method, tuned": tables of so small a model weigh as much as some blocks, and workers agree
// a little.
TEST(PlanFormulasTest, ResultsOfDeltasAreNearThoseOfTheStudy) {
  EXPECT_NEAR(MostBytes(76, 8 * 32, kDeltaResultBits), 15.7e3, 0.05 * 15.7e3);
  EXPECT_NEAR(MostBytes(76, 8 * 8, kDeltaResultBits), 5.55e3, 0.05 * 5.55e3);
}

// Bounds of what dense_payload_test measures, with random signs.
TEST(PlanFormulasTest, DenseResultsAreNearMeasuredOnes) {
  for (const auto& [workers, bits] :
       {std::pair(1, 1.0), std::pair(2, 1.73), std::pair(3, 2.43), std::pair(4, 2.20),
        std::pair(8, 2.91), std::pair(32, 3.67)}) {
    EXPECT_GE(DenseResultBits(workers), bits) << workers;
    EXPECT_LE(DenseResultBits(workers), 1.31 * bits) << workers;
  }
}

PlanOptions Report1B2(const std::string& method) {
  PlanOptions options;
  options.model = DISTRO_SOURCE_DIR "/examples/llama_1b2/config.json";
  options.method = method;
  return options;
}

nlohmann::json JsonOf(const PlanOptions& options) { return MakePlan(options).value().json; }

double Number(const nlohmann::json& json, const char* key) { return json[key].get<double>(); }

TEST(PlanTest, SignsOfAModelOfTheReportsLayout) {
  PlanOptions options = Report1B2("signs");
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

TEST(PlanTest, LosslessTrafficOfADayOfSigns) {
  const auto plan = MakePlan(Report1B2("signs"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NEAR(plan->json["aggregator_sent_bytes_a_day"].get<double>(), 9.7e12, 0.1e12);
  EXPECT_NEAR(plan->json["aggregator_disk_bytes_without_archiver"].get<double>(), 875e9, 3e9);
}

// Memory is what worker/plan/memory_plan.h says, of which the worker's own tests know how it
// measures.
TEST(PlanTest, ShardingMakesMemorySmallerInThisOrder) {
  PlanOptions options = Report1B2("signs");
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

// The parameters of two units at a time in bf16, and what cuBLAS takes of each GPU.
TEST(PlanTest, MemoryIsThatOfAWorkerOnGpusWithoutFlags) {
  PlanOptions options = Report1B2("signs");
  const nlohmann::json memory = JsonOf(options)["memory"][0];
  EXPECT_EQ(options.param_dtype,
            worker::Name(worker::DefaultParamDtype(worker::DeviceKind::kCuda)));
  EXPECT_GT(Number(memory, "gathered_bytes"), 0);
  options.param_dtype = "f32";
  EXPECT_EQ(Number(JsonOf(options)["memory"][0], "gathered_bytes"), 0);
  const double lookahead = Number(memory, "parameters_bytes");
  EXPECT_GE(Number(memory, "workspace_bytes") - lookahead,
            worker::kCublasHandles * worker::kCublasWorkspaceBytes);
}

TEST(PlanTest, ReducesMemoryByFlags) {
  const auto total = [](const PlanOptions& options) {
    return MakePlan(options).value().json["memory"][0]["total_bytes"].get<double>();
  };
  PlanOptions options = Report1B2("signs");
  const double plain = total(options);
  options.overlap = false;
  const double without_lookahead = total(options);
  EXPECT_NEAR(plain - without_lookahead, 4 * 1.205e9, 0.001e9) << "the lookahead copy";
  options.activation_checkpointing = 1;
  EXPECT_LT(total(options), without_lookahead);
  options.param_dtype = "f64";
  EXPECT_THAT(std::string(MakePlan(options).status().message()), HasSubstr("--param_dtype"));
}

// The last figure is what results would take with levels of 2 bits, in place of the 0.3 that the
// study found, and a coder's waste.
TEST(PlanTest, DeltasOfAModelOfTheReportsLayout) {
  struct Case {
    int nodes, kept;
    double up, down, most_down;  // MB
  };
  for (const Case& c : {Case{8, 8, 3.4, 20.5, 27}, Case{8, 32, 11.1, 62.9, 87},
                        Case{32, 8, 3.4, 62.9, 86}, Case{32, 32, 11.1, 171, 249}}) {
    SCOPED_TRACE(::testing::Message() << c.nodes << " workers, K = " << c.kept);
    PlanOptions options = Report1B2("deltas");
    options.workers = c.nodes;
    options.kept = c.kept;
    const nlohmann::json plan = JsonOf(options);
    EXPECT_NEAR(Number(plan, "update_bytes"), 1e6 * c.up, 0.05e6);
    EXPECT_NEAR(Number(plan, "result_bytes"), 1e6 * c.down, 0.01e6 * c.down);
    EXPECT_LT(Number(plan, "result_bytes"), 1e6 * c.most_down);
  }
}

TEST(PlanTest, LocalStepsShareTheBytesOfARound) {
  PlanOptions options = Report1B2("deltas");
  options.kept = 32;
  options.local_steps = 1;
  const nlohmann::json one = JsonOf(options);
  options.local_steps = 5;
  const nlohmann::json five = JsonOf(options);
  EXPECT_EQ(five["update_bytes"], one["update_bytes"]);
  EXPECT_NEAR(Number(five, "update_bytes_a_step"), 2.2e6, 0.05e6);
  EXPECT_DOUBLE_EQ(Number(five, "result_bytes_a_step"), Number(one, "result_bytes") / 5);
  const double exchange = Number(one, "upload_seconds") + Number(one, "download_seconds");
  EXPECT_DOUBLE_EQ(Number(one, "round_seconds"), 10 + exchange) << "nothing overlaps";
  EXPECT_DOUBLE_EQ(Number(five, "round_seconds"), 5 * 10 + exchange);
  EXPECT_DOUBLE_EQ(Number(five, "step_seconds"), 10 + exchange / 5);
  EXPECT_DOUBLE_EQ(Number(five, "run_days"), 25000 * (5 * 10 + exchange) / 86400);
}

TEST(PlanFormulasTest, FitStepsIntoWindow) {
  EXPECT_EQ(RoundOfWorker(4, 240, 100).steps, 60);
  EXPECT_EQ(RoundOfWorker(4, 240, 50).steps, 50) << "no more than H";
  EXPECT_EQ(RoundOfWorker(300, 240, 50).steps, 1) << "which lasts longer than the window";
  EXPECT_EQ(RoundOfWorker(7, 20, 50).steps, 2);
  EXPECT_DOUBLE_EQ(RoundOfWorker(7, 20, 50).seconds, 14);
  EXPECT_EQ(RoundOfWorker(7, 0, 50).steps, 50) << "no window";
  EXPECT_EQ(RoundOfWorker(7, 0, 50).weight, 1);
  EXPECT_EQ(RoundOfWorker(4, 240, 60).weight, 15);
  EXPECT_EQ(RoundOfWorker(8, 240, 60).weight, 8) << "7.5";
}

TEST(PlanTest, WorkersThatDifferDoWhatTheyCanWithinAWindow) {
  PlanOptions options = Report1B2("deltas");
  options.workers = 3;
  options.local_steps = 60;
  options.step_seconds = {4, 8, 32};
  const nlohmann::json fixed = JsonOf(options);
  const double exchange = Number(fixed, "upload_seconds") + Number(fixed, "download_seconds");
  EXPECT_DOUBLE_EQ(Number(fixed, "round_seconds"), 60 * 32 + exchange) << "the slowest sets it";
  options.window_seconds = 240;
  const nlohmann::json window = JsonOf(options);
  EXPECT_DOUBLE_EQ(Number(window, "round_seconds"), 240 + exchange);
  ASSERT_EQ(window["workers"].size(), 3u);
  const int steps[] = {60, 30, 7}, weights[] = {15, 8, 2};
  for (int i = 0; i < 3; ++i) {
    const nlohmann::json& worker = window["workers"][i];
    EXPECT_EQ(worker["steps_a_round"], steps[i]);
    EXPECT_EQ(worker["weight"], weights[i]);
    EXPECT_DOUBLE_EQ(Number(worker, "steps_a_day"), 86400 / (240 + exchange) * steps[i]);
    EXPECT_EQ(fixed["workers"][i]["steps_a_round"], 60);
    EXPECT_EQ(fixed["workers"][i]["weight"], 1);
  }
  EXPECT_LT(Number(fixed["workers"][0], "compute_ratio"), 0.13) << "it waits for the others";
  EXPECT_GT(Number(window["workers"][0], "compute_ratio"), 0.85);
}

// Rounds keep their headers for ever, in packs; without an archiver each a file of whole blocks.
TEST(PlanTest, GrowsDiskWithRounds) {
  PlanOptions options;
  options.model = DISTRO_SOURCE_DIR "/examples/demo";
  options.workers = 2;
  options.gpu_memory_gb = 8;
  options.rounds = 25'000;
  const nlohmann::json some = JsonOf(options);
  options.rounds = 4'000'000;
  const nlohmann::json many = JsonOf(options);
  const double header = Number(some, "header_bytes");
  EXPECT_GT(header, 300);
  EXPECT_LT(header, 4096);
  const double more = options.rounds - 25'000;
  EXPECT_NEAR(Number(many, "aggregator_disk_bytes") - Number(some, "aggregator_disk_bytes"),
              more * header, 0.1 * more * header);
  EXPECT_NEAR(Number(many, "aggregator_disk_files") - Number(some, "aggregator_disk_files"),
              more / 1024, 0.01 * more / 1024);
  EXPECT_GE(Number(many, "aggregator_disk_files_without_archiver"), 4'000'000);
  EXPECT_GE(Number(many, "aggregator_disk_bytes_without_archiver"), 4'000'000 * 4096.0);
  EXPECT_GT(Number(many, "aggregator_volume_bytes"), Number(many, "aggregator_disk_bytes"));
  EXPECT_NEAR(Number(many, "aggregator_memory_bytes") - Number(some, "aggregator_memory_bytes"),
              48 * more, 1);
}

// The plan of the ranks is not all that the process takes.
TEST(PlanTest, NamesMemoryOfProgram) {
  const auto plan = MakePlan(Report1B2("deltas"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->json["worker_program_bytes"], worker::kProgramBytes);
  EXPECT_THAT(plan->text, HasSubstr("the worker's program itself: 160 MB of the host more"));
}

// Rows of bench/aggregator_load/README.md and of docs/performance.md, "Both methods": what was
// measured is below what is planned, and not far below.
TEST(PlanClusterTest, IsAboveWhatTheLoadTestsMeasured) {
  struct Row {
    bool deltas;
    int workers, kept;
    double update, result;       // MB
    double cpu_seconds, memory;  // measured: a round, peak RSS in MB
  };
  for (const Row& row :
       {Row{false, 8, 4, 1.77, 11.05, 0.27, 245}, Row{false, 32, 4, 1.77, 34.78, 1.19, 540},
        Row{false, 32, 4, 1.77, 31.23, 1.43, 461}, Row{false, 128, 4, 1.77, 12.84, 4.89, 898},
        Row{false, 512, 4, 1.77, 12.84, 22.74, 1727}, Row{true, 8, 32, 11.15, 64.60, 2.79, 678},
        Row{true, 32, 32, 11.15, 168.94, 12.27, 1259}, Row{true, 8, 128, 35.00, 168.55, 8.78, 1093},
        Row{true, 32, 128, 35.00, 342.11, 32.70, 2355}}) {
    SCOPED_TRACE(::testing::Message() << (row.deltas ? "deltas, " : "signs, ") << row.workers);
    const PlanMethod method = {.figures = row.deltas ? kDeltasFigures : kSignsFigures,
                               .kept = row.kept,
                               .update = 1e6 * row.update,
                               .result = 1e6 * row.result,
                               .round = 1000};
    const PlanCluster cluster =
        ClusterOf({.parameters = 1.2e9, .blocks = 294177, .workers = row.workers}, method);
    EXPECT_GE(cluster.aggregator_cpu_seconds, 0.99 * row.cpu_seconds);
    EXPECT_LT(cluster.aggregator_cpu_seconds, 1.8 * row.cpu_seconds);
    EXPECT_GT(cluster.aggregator_memory, 1e6 * row.memory);
    EXPECT_LT(cluster.aggregator_memory, 2.3e6 * row.memory);
  }
}

TEST(PlanClusterTest, ShorterRoundsTakeMoreCoresAndTheirMemory) {
  PlanMethod method = {
      .figures = kDeltasFigures, .kept = 32, .update = 11e6, .result = 169e6, .round = 3600};
  const PlanSize size = {.parameters = 1.2e9, .blocks = 294177, .workers = 32};
  const PlanCluster hour = ClusterOf(size, method);
  EXPECT_EQ(hour.aggregator_cores, 0.5) << "the least";
  EXPECT_EQ(hour.archiver_threads, 1);
  method.round = 20;
  const PlanCluster seconds = ClusterOf(size, method);
  EXPECT_NEAR(seconds.aggregator_cores, 12.6 / 2, 0.1) << "12.6 s of work in a tenth of the round";
  EXPECT_NEAR(seconds.aggregator_memory - hour.aggregator_memory, 5 * 134e6, 1);
  EXPECT_DOUBLE_EQ(seconds.egress_a_day, 180 * hour.egress_a_day);
  EXPECT_GT(seconds.archiver_memory, 4 * 1.2e9);
}

TEST(PlanClusterTest, ValuesOfTheChartAreRoundedUp) {
  const std::string values = HelmValues({.aggregator_cores = 1.2,
                                         .aggregator_memory = 1.08e9,
                                         .aggregator_disk = 42e9,
                                         .egress_a_day = 1e12,
                                         .egress_bits_per_second = 93e6,
                                         .archiver_threads = 2,
                                         .archiver_memory = 5.5e9,
                                         .archiver_disk = 42e9});
  EXPECT_THAT(values, HasSubstr(R"(# Egress of the aggregator: 1.00 TB a day, 93 Mbit/s on average.
resources:
  requests:
    cpu: 1500m
    memory: 2Gi
persistence:
  size: 40Gi
archiver:
  threads: 2
  resources:
    requests:
      cpu: 2000m
      memory: 6Gi
  persistence:
    size: 40Gi)"));
}

TEST(PlanTest, TakesModelFolderOrFile) {
  PlanOptions options = Report1B2("deltas");
  const auto of_file = MakePlan(options);
  options.model = DISTRO_SOURCE_DIR "/examples/llama_1b2";
  const auto of_folder = MakePlan(options);
  ASSERT_TRUE(of_file.ok() && of_folder.ok()) << of_folder.status();
  EXPECT_EQ(of_folder->json, of_file->json);
  EXPECT_THAT(of_folder->helm, HasSubstr("\npersistence:\n  size: 40Gi\n"));
  EXPECT_THAT(of_folder->text, HasSubstr("\naggregator: "));
}

TEST(PlanTest, DefaultsAreThoseOfTheMethod) {
  EXPECT_EQ(PlanOptions().method, "deltas");
  const nlohmann::json deltas = JsonOf(Report1B2("deltas"));
  EXPECT_EQ(deltas["kept_per_block"], 128);
  EXPECT_EQ(deltas["local_steps"], 5);
  EXPECT_EQ(deltas["overlap"], 0);
  const nlohmann::json signs = JsonOf(Report1B2("signs"));
  EXPECT_EQ(signs["kept_per_block"], 4);
  EXPECT_EQ(signs["overlap"], 1);
  PlanOptions options = Report1B2("signs");
  options.kept = 7;
  EXPECT_EQ(JsonOf(options)["kept_per_block"], 7);
}

TEST(PlanTest, ComparesLocalStepsAndPositions) {
  const auto plan = MakePlan(Report1B2("deltas"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const nlohmann::json& choices = plan->json["choices"];
  ASSERT_EQ(choices.size(), 2u) << "not the planned one again";
  EXPECT_EQ(choices[0]["local_steps"], 20);
  EXPECT_EQ(choices[1]["kept_per_block"], 4096);
  PlanOptions chosen = Report1B2("deltas");
  chosen.local_steps = 20;
  EXPECT_EQ(choices[0]["step_seconds"], JsonOf(chosen)["step_seconds"]);
  chosen.local_steps = 3;
  EXPECT_EQ(JsonOf(chosen)["choices"].size(), 3u);
  chosen.step_seconds = {4, 8};
  chosen.window_seconds = 240;
  EXPECT_TRUE(JsonOf(chosen)["choices"].empty());
  EXPECT_TRUE(JsonOf(Report1B2("signs"))["choices"].empty());
}

// Of `workers` whose steps take 30 s, behind links of so many Mbit/s.
PlanOptions OnLinks(int workers, double up, double down) {
  PlanOptions options = Report1B2("deltas");
  options.workers = workers;
  options.compute_seconds = 30;
  options.up_mbps = up;
  options.down_mbps = down;
  return options;
}

TEST(PlanTest, HasWhatWasMeasuredOfLearning) {
  const DeltasChoice& measured = kDeltasChoices[0];
  ASSERT_EQ(measured.kept, 128);
  for (const auto& [workers, learning] : {std::pair(3, measured.three), {8, measured.eight}}) {
    const auto plan = MakePlan(OnLinks(workers, 1e6, 1e6));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->json["gain_kept"], learning.gain);
    EXPECT_NEAR(Number(plan->json, "speed_up"), learning.machines, 0.01) << "links cost nothing";
    EXPECT_THAT(plan->text,
                ContainsRegex(absl::StrFormat("\ndeltas, K = 128, H = 5  [^\n]* %.0f %%  +%.1fx\n",
                                              100 * learning.gain, learning.machines)));
  }
  const std::optional<PlanLearning> five = LearningOf(5, 128, 5);
  ASSERT_TRUE(five.has_value());
  EXPECT_LT(five->gain, measured.three.gain);
  EXPECT_GT(five->gain, measured.eight.gain);
  EXPECT_NEAR(LearningOf(5, 128, 2)->machines, 2 * measured.three.machines / 3, 1e-9);
  for (const auto& [h, k, workers] : {std::tuple(5, 128, 1), {5, 128, 9}, {3, 128, 3}, {5, 64, 3}})
    EXPECT_EQ(LearningOf(h, k, workers), std::nullopt) << "not measured";
}

TEST(PlanTest, NamesTheFastestChoice) {
  const auto planned = MakePlan(OnLinks(3, 10, 50));
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(planned->text, HasSubstr("\nno other of these deltas learn a tenth faster\n"));
  const nlohmann::json& home = planned->json;
  EXPECT_DOUBLE_EQ(Number(home, "speed_up"),
                   kDeltasChoices[0].three.machines * 30 / Number(home, "step_seconds"));
  EXPECT_EQ(home["fastest"], nlohmann::json({{"local_steps", 5}, {"kept_per_block", 128}}));
  const auto slow = MakePlan(OnLinks(3, 2, 10));
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_EQ(slow->json["fastest"]["local_steps"], 20);
  EXPECT_THAT(slow->text,
              HasSubstr("\nfaster: \"local_steps\": 20, \"kept_per_block\": 128 in run.json\n"));
  const auto slowest = MakePlan(OnLinks(3, 0.1, 0.1));
  ASSERT_TRUE(slowest.ok()) << slowest.status();
  EXPECT_THAT(slowest->text,
              HasSubstr("\non these links one worker alone learns faster than these deltas\n"));
  EXPECT_FALSE(slowest->json.contains("fastest"));
}

TEST(PlanTest, RefusesMoreWorkersThanAggregatorTakes) {
  EXPECT_TRUE(MakePlan(OnLinks(4096, 100, 500)).ok());
  const testing::ScratchFolder folder;
  nlohmann::json config =
      nlohmann::json::parse(ReadTextFile(Report1B2("deltas").model, 1 << 20).value());
  config["hidden_size"] = 8192;
  config["intermediate_size"] = 28672;
  config["num_attention_heads"] = config["num_key_value_heads"] = 64;
  config["num_hidden_layers"] = 80;
  PlanOptions large = OnLinks(4096, 100, 500);
  large.model = folder.File("config.json");
  ASSERT_TRUE(WriteFileAtomically(large.model, config.dump()).ok());
  const absl::Status status = MakePlan(large).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("--workers: max_workers: the header of a round"),
                                      HasSubstr("set max_workers to at most ")));
}

TEST(PlanTest, CountsRangesOfSamplesOfAWindow) {
  PlanOptions options = OnLinks(200, 100, 500);
  options.local_steps = 60;
  options.step_seconds = {4, 8};
  const nlohmann::json fixed = JsonOf(options);
  options.window_seconds = 240;
  EXPECT_GT(Number(JsonOf(options), "header_bytes"), 2 * Number(fixed, "header_bytes"));
}

TEST(PlanTest, NamesTheFastestOfThoseThatWereMeasured) {
  PlanOptions unknown = OnLinks(3, 10, 50);
  unknown.local_steps = 3;
  const auto plan = MakePlan(unknown);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->text, HasSubstr("\nfastest of those that were measured: \"local_steps\": 5, "));
}

TEST(PlanTest, NamesNoFastestDeltasForSigns) {
  PlanOptions signs = OnLinks(3, 10, 50);
  signs.method = "signs";
  EXPECT_FALSE(JsonOf(signs).contains("fastest"));
}

TEST(PlanTest, KeepsThePlannedChoiceUnlessAnotherIsClearlyFaster) {
  PlanOptions planned = OnLinks(8, 1e6, 1e6);
  planned.local_steps = 20;
  EXPECT_EQ(JsonOf(planned)["fastest"]["local_steps"], 5) << "with every position";
  planned = OnLinks(3, 1e6, 1e6);  // 2.6 and 2.7
  EXPECT_EQ(JsonOf(planned)["fastest"]["kept_per_block"], 128);
}

TEST(PlanTest, HasNoSpeedUpWithoutMeasurement) {
  PlanOptions cut = OnLinks(3, 10, 50);
  cut.kept_votes = 64;  // measured were whole results
  PlanOptions differing = OnLinks(3, 10, 50);
  differing.step_seconds = {4, 8};  // alone is which of the two?
  for (const PlanOptions& options : {OnLinks(9, 10, 50), cut, differing}) {
    const nlohmann::json plan = JsonOf(options);
    EXPECT_FALSE(plan.contains("speed_up"));
    EXPECT_FALSE(plan.contains("fastest"));
  }
}

TEST(PlanTest, HasTheOtherMethodBesideIt) {
  PlanOptions options = Report1B2("deltas");
  options.local_steps = 7;
  options.kept = 16;
  const auto plan = MakePlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const nlohmann::json& signs = plan->json["other_method"];
  EXPECT_EQ(signs["method"], "signs");
  EXPECT_EQ(signs["kept_per_block"], 4) << "its own default";
  EXPECT_EQ(signs["update_bytes"], JsonOf(Report1B2("signs"))["update_bytes"]);
  EXPECT_THAT(plan->text, AllOf(HasSubstr("method: deltas, K = 16, H = 7\n"),
                                HasSubstr("\nsigns, K = 4, overlap 1  ")));
  const auto other = MakePlan(Report1B2("signs"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(other->text, AllOf(HasSubstr("method: signs, K = 4, overlap 1\n"),
                                 HasSubstr("\ndeltas, K = 128, H = 5  ")));
}

// An error buffer and two arrays of the inner optimizer; positions, signs and a code of a block;
// and the copy that local steps move.
TEST(PlanTest, DeltasKeepThreeArraysAndACopy) {
  const nlohmann::json plan = JsonOf(Report1B2("deltas"));
  const double parameters = Number(plan, "parameters");
  const nlohmann::json& memory = plan["memory"][0];
  constexpr double kPending = (3 * 128 + 1) / 4096.0;
  EXPECT_NEAR(Number(memory, "momentum_bytes"), (3 * 4 + kPending) * parameters, 1e-3 * parameters);
  PlanOptions without_copy = Report1B2("signs");
  without_copy.overlap = false;
  const nlohmann::json one_array = JsonOf(without_copy)["memory"][0];
  EXPECT_NEAR(Number(memory, "total_bytes") - Number(one_array, "total_bytes"),
              (2 * 4 + 4 + kPending) * parameters, 0.05 * parameters);
}

TEST(PlanTest, RanksShareWhatDeltasKeep) {
  PlanOptions options = Report1B2("deltas");
  const double alone = Number(JsonOf(options)["memory"][3], "momentum_bytes");
  options.gpus = 4;
  const nlohmann::json full_shard = JsonOf(options)["memory"][3];
  EXPECT_EQ(full_shard["strategy"], "full_shard");
  EXPECT_NEAR(Number(full_shard, "momentum_bytes"), alone / 4, 0.02 * alone);
}

TEST(PlanTest, SaysWhenNoStrategyFits) {
  PlanOptions options = Report1B2("signs");
  options.gpu_memory_gb = 2;
  const auto plan = MakePlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->verdict.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(plan->text, HasSubstr("full_shard"));
}

void ExpectRefused(const PlanOptions& options, const std::vector<std::string>& words) {
  const absl::Status status = MakePlan(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const std::string& word : words) EXPECT_THAT(std::string(status.message()), HasSubstr(word));
}

TEST(PlanTest, RefusesWindowWithoutStepTimes) {
  PlanOptions options = Report1B2("deltas");
  options.window_seconds = 240;
  ExpectRefused(options, {"--window_seconds", "--step_seconds"});
  options.step_seconds = {4, 0};
  ExpectRefused(options, {"--step_seconds: 0 is outside"});
  PlanOptions signs = Report1B2("signs");
  signs.window_seconds = 240;
  signs.step_seconds = {4, 8};
  ExpectRefused(signs, {"--window_seconds", "needs --method deltas"});
}

TEST(PlanTest, RefusesWhatAMethodDoesNotHave) {
  ExpectRefused(Report1B2("votes"), {"--method", "'votes'", "give deltas or signs"});
  PlanOptions signs = Report1B2("signs");
  signs.local_steps = 5;
  ExpectRefused(signs, {"--local_steps: 5", "--method deltas"});
  PlanOptions deltas = Report1B2("deltas");
  deltas.overlap = true;
  ExpectRefused(deltas, {"--overlap: 1", "--method signs"});
  deltas.overlap = false;
  EXPECT_TRUE(MakePlan(deltas).ok());
  for (const int steps : {-1, 1001}) {
    deltas.local_steps = steps;
    ExpectRefused(deltas, {"--local_steps", "0 to 1000"});
  }
}

TEST(PlanTest, NamesTheFlagThatIsWrong) {
  PlanOptions options = Report1B2("deltas");
  options.up_mbps = 0;
  EXPECT_THAT(std::string(MakePlan(options).status().message()), HasSubstr("--up_mbps"));
  EXPECT_THAT(std::string(MakePlan({}).status().message()), HasSubstr("--model"));
}

}  // namespace
}  // namespace distro::tools
