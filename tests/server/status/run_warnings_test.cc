#include "server/status/run_warnings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunWarningsTest : public ::testing::Test {
 protected:
  RunWarningsTest() {
    status_.state = v1::RUN_STATE_TRAINING;
    status_.round = RoundId(7);
    for (const char* name : {"a", "b"})
      status_.workers.push_back({.name = name, .state = v1::MEMBER_STATE_ACTIVE});
    history_.most_expected = 2;
    history_.round_seconds = 2;
    SetMetric("data_dir_size_bytes", 1000);
    SetMetric("data_dir_free_bytes", 500);
  }
  void SetMetric(const std::string& name, double value) { gauges_[name] = value; }
  std::vector<Warning> Warnings() {
    MetricsRegistry registry("distro_aggregator_");
    for (const auto& [name, value] : gauges_) registry.AddGauge(name, "Help.")->Set(value);
    const MetricValues metrics(registry.Collect());
    return RunWarnings({.status = &status_,
                        .history = &history_,
                        .metrics = &metrics,
                        .min_workers = 1,
                        .now = absl::FromUnixSeconds(1'000'000)});
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const Warning& warning : Warnings()) names.push_back(warning.name);
    return names;
  }

  RunStatus status_;
  HistoryView history_;
  std::map<std::string, double> gauges_;
};

TEST_F(RunWarningsTest, IsEmptyIfHealthy) { EXPECT_THAT(Names(), IsEmpty()); }

TEST_F(RunWarningsTest, TellsStalledRound) {
  history_.open_for = absl::Seconds(59);
  EXPECT_THAT(Names(), IsEmpty());
  history_.open_for = absl::Seconds(61);
  EXPECT_THAT(Names(), ElementsAre("DistroTrainingStalled"));
  history_.round_seconds = 20;
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(RunWarningsTest, WaitingIsAWarningOnceThereWereRounds) {
  status_.state = v1::RUN_STATE_WAITING;
  status_.reason = "1 of 2 workers";
  EXPECT_THAT(Names(), ElementsAre("DistroTrainingStalled"));
  EXPECT_THAT(Warnings()[0].what, HasSubstr("1 of 2 workers"));
  status_.round = RoundId(0);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(RunWarningsTest, TellsQuorumAtRisk) {
  status_.workers[1].state = v1::MEMBER_STATE_LEFT;
  EXPECT_THAT(Names(), ElementsAre("DistroQuorumAtRisk"));
  history_.most_expected = 1;  // there never were more
  EXPECT_THAT(Names(), IsEmpty());
}

// Also once the run is done: it did not train to its end.
TEST_F(RunWarningsTest, RoundsInWhichAllAbstained) {
  status_.state = v1::RUN_STATE_DONE;
  history_.empty_rounds = 2;
  EXPECT_THAT(Names(), ElementsAre("DistroLossNotFinite"));
  EXPECT_FALSE(Warnings()[0].critical);
  history_.empty_rounds = 3;
  EXPECT_TRUE(Warnings()[0].critical);
  EXPECT_THAT(Warnings()[0].what, HasSubstr("abstained in the last 3 rounds"));
}

TEST_F(RunWarningsTest, CriticalOnesComeFirst) {
  history_.excluded_ratio = 0.11;
  history_.last_loss_missing = true;
  history_.since_mismatch = absl::Minutes(9);
  status_.mismatch = "round 7, of an archiver, in t1";
  EXPECT_THAT(Names(), ElementsAre("DistroReplicasDiverged", "DistroLossNotFinite",
                                   "DistroUpdatesExcluded"));
  EXPECT_THAT(Warnings()[0].what, HasSubstr("(round 7, of an archiver, in t1)"));
  history_.since_mismatch = absl::Minutes(11);
  history_.excluded_ratio = 0.1;
  EXPECT_THAT(Names(), ElementsAre("DistroLossNotFinite"));
}

TEST_F(RunWarningsTest, TellsDiskAndCertificate) {
  SetMetric("data_dir_free_bytes", 99);
  SetMetric("tls_certificate_expiry_timestamp_seconds", 1'000'000 + 6 * 86400);
  EXPECT_THAT(Names(), ElementsAre("DistroDiskFilling", "DistroCertificateExpiry"));
  status_.disk_error = "no space left";
  EXPECT_TRUE(Warnings()[0].critical);
  EXPECT_THAT(Warnings()[0].what, HasSubstr("no space left"));
}

// A disk with free bytes and no inodes takes no further round either.
TEST_F(RunWarningsTest, TellsFewInodes) {
  SetMetric("data_dir_size_files", 0);
  SetMetric("data_dir_free_files", 0);
  EXPECT_THAT(Names(), IsEmpty()) << "the file system has no limit";
  SetMetric("data_dir_size_files", 200);
  SetMetric("data_dir_free_files", 19);
  SetMetric("log_files", 160);
  EXPECT_THAT(Names(), ElementsAre("DistroDiskFilling"));
  EXPECT_THAT(Warnings()[0].what, HasSubstr("room for 19 more files"));
  EXPECT_THAT(Warnings()[0].what, HasSubstr("the log has 160 files"));
  SetMetric("data_dir_free_files", 20);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(RunWarningsTest, TellsDamagedRecord) {
  SetMetric("log_damaged_records", 2);
  EXPECT_THAT(Names(), ElementsAre("DistroLogDamaged"));
  EXPECT_TRUE(Warnings()[0].critical);
  EXPECT_THAT(Warnings()[0].what, HasSubstr("2 records"));
}

TEST_F(RunWarningsTest, TellsUnprunedLog) {
  SetMetric("round", 1000);
  EXPECT_THAT(Names(), ElementsAre("DistroSnapshotStale"));
  SetMetric("snapshot_round", 900);
  EXPECT_THAT(Names(), IsEmpty());
}

}  // namespace
}  // namespace distro::server
