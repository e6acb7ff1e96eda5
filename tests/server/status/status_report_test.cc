#include "server/status/status_report.h"

#include <cmath>

#include "common/base/json.h"
#include "gtest/gtest.h"
#include "tests/testing/round_builder.h"

namespace distro::server {
namespace {

class StatusReportTest : public ::testing::Test {
 protected:
  StatusReportTest() {
    run_.run_id = "run-1";
    run_.config.set_rounds(100);
    run_.layout = std::make_shared<const Layout>(testing::SmallLayout());
    facts_.run = &run_;
    facts_.rates = &rates_;
    facts_.metrics = &metrics_;
    facts_.now = absl::FromUnixSeconds(5);
    facts_.status.now = absl::Seconds(9);
  }
  void AddWorker(Worker worker) {
    facts_.status.workers.push_back(std::move(worker));
    facts_.status.since.push_back(absl::Seconds(2));
    facts_.status.agreement.push_back(0);
  }
  nlohmann::json Report() {
    const auto report = ParseJson(StatusJson(facts_));
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  RunIdentity run_;
  WorkerRates rates_;
  MetricValues metrics_{{}};
  StatusFacts facts_;
};

TEST_F(StatusReportTest, TextOfOthersIsOnlyText) {
  const std::string hostile = "\"</script><img src=x onerror=alert(1)>\\ \n\x01 \xff";
  AddWorker({.name = "a", .state = v1::MEMBER_STATE_QUARANTINED, .reason = hostile});
  const nlohmann::json row = Report()["workers"][0];
  EXPECT_EQ(row["reason"], "\"</script><img src=x onerror=alert(1)>\\ \n\x01 \xef\xbf\xbd");
}

TEST_F(StatusReportTest, WorkersWithProblemsComeFirstAndThoseThatLeftLast) {
  AddWorker({.name = "a", .state = v1::MEMBER_STATE_ACTIVE});
  AddWorker({.name = "b", .state = v1::MEMBER_STATE_LEFT});
  AddWorker({.name = "c", .state = v1::MEMBER_STATE_QUARANTINED});
  facts_.status.since[1] = -absl::Hours(2);
  const nlohmann::json workers = Report()["workers"];
  EXPECT_EQ(workers[0]["name"], "c");
  EXPECT_EQ(workers[1]["name"], "a");
  EXPECT_EQ(workers[1]["in_state_seconds"], 7);
  EXPECT_EQ(workers[2]["severity"], "gone");
}

TEST_F(StatusReportTest, NumbersThatAreNotKnownOrNotFiniteAreNull) {
  AddWorker({.name = "a", .state = v1::MEMBER_STATE_ACTIVE});
  auto telemetry = std::make_shared<v1::WorkerTelemetry>();
  telemetry->set_loss(NAN);
  WorkerReport report;
  report.worker = "a";
  report.telemetry = telemetry;
  facts_.reports.push_back(report);
  const nlohmann::json shown = Report();
  EXPECT_TRUE(shown["workers"][0]["loss"].is_null());
  EXPECT_TRUE(shown["workers"][0]["tokens_per_second"].is_null());
  EXPECT_TRUE(shown["round"]["per_minute"].is_null());
  EXPECT_TRUE(shown["bytes"]["up"].is_null());
}

TEST_F(StatusReportTest, SaysWhatCameFromMirrors) {
  AddWorker({.name = "a", .state = v1::MEMBER_STATE_ACTIVE});
  EXPECT_TRUE(Report()["workers"][0]["mirror_bytes"].is_null());
  auto telemetry = std::make_shared<v1::WorkerTelemetry>();
  telemetry->set_received_bytes(70);
  telemetry->mutable_transfer()->set_received_snapshot_bytes(30);
  telemetry->mutable_transfer()->set_mirror_bytes(60);
  telemetry->mutable_transfer()->set_mirror_failures(2);
  WorkerReport report;
  report.worker = "a";
  report.telemetry = telemetry;
  facts_.reports.push_back(report);
  const nlohmann::json row = Report()["workers"][0];
  EXPECT_EQ(row["received_bytes"], 70);
  EXPECT_EQ(row["received_snapshot_bytes"], 30);
  EXPECT_EQ(row["mirror_bytes"], 60);
  EXPECT_EQ(row["mirror_failures"], 2);
}

TEST_F(StatusReportTest, BytesAreComparedWithGradientsOfTheSameModel) {
  const nlohmann::json bytes = Report()["bytes"];
  EXPECT_EQ(bytes["gradient"], 4 * run_.layout->elements());
  EXPECT_EQ(bytes["report_up"], 2.8e6);
  EXPECT_EQ(bytes["report_down"], 86.8e6);
}

TEST_F(StatusReportTest, NamesMethodAndSettings) {
  run_.config.set_method(v1::METHOD_SIGNS);
  run_.config.set_kept_per_block(4);
  EXPECT_EQ(Report()["run"]["method"], "signs, K = 4");
  run_.config.set_method(v1::METHOD_DELTAS);
  run_.config.set_kept_per_block(32);
  run_.config.set_local_steps(5);
  run_.config.set_inner_optimizer(v1::INNER_OPTIMIZER_MUON);
  EXPECT_EQ(Report()["run"]["method"], "deltas, H = 5, K = 32, muon");
  run_.config.set_inner_optimizer(v1::INNER_OPTIMIZER_ADAMW);
  EXPECT_EQ(Report()["run"]["method"], "deltas, H = 5, K = 32, adamw");
}

TEST_F(StatusReportTest, WithoutARunItSaysSo) {
  facts_.run = nullptr;
  facts_.status = {};
  facts_.status.state = v1::RUN_STATE_EMPTY;
  const nlohmann::json report = Report();
  EXPECT_EQ(report["run"]["state"], "empty");
  EXPECT_EQ(report["run"]["id"], "");
  EXPECT_EQ(report["run"]["method"], "");
  EXPECT_EQ(report["workers"], nlohmann::json::array());
}

}  // namespace
}  // namespace distro::server
