// Commands that look at an aggregator, as a command line, against a real one.
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/server_fixture.h"
#include "tools/distroctl/commands.h"
#include "tools/distroctl/workers.h"

namespace distro::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Done {
  int code;
  std::string out, error;
  nlohmann::json json() const { return ParseJson(out).value_or(nlohmann::json()); }
};

class AggregatorCommandsTest : public testing::ServerTest {
 protected:
  // `words` after "A" became the aggregator's address and "H" that of its HTTP side.
  Done Distroctl(const std::string& words) {
    std::vector<std::string> given;
    for (const absl::string_view word : absl::StrSplit(words, ' ')) {
      given.emplace_back(word == "A"   ? server_->grpc_address()
                         : word == "H" ? server_->http_address()
                                       : std::string(word));
    }
    given.push_back("--insecure");
    std::ostringstream out, error;
    const int code = RunCommandLine(given, &out, &error);
    return {code, out.str(), error.str()};
  }
};

TEST_F(AggregatorCommandsTest, ShowsWaitingWorker) {
  Start();
  const auto worker = NewActive("w1");
  const Done run = Distroctl("run show A --output json");
  EXPECT_EQ(run.code, kExitDone) << run.error;
  EXPECT_EQ(run.json()["config"]["name"], testing::SmallConfig().name());
  const Done workers = Distroctl("workers A --output json");
  EXPECT_EQ(workers.json()["workers"][0]["name"], "w1") << workers.out << workers.error;
  EXPECT_EQ(workers.json()["workers"][0]["state"], "active");
  EXPECT_THAT(Distroctl("workers A").out, AllOf(HasSubstr("NEXT ROUND"), HasSubstr("\nw1  ")));
}

TEST_F(AggregatorCommandsTest, WatchingPrintsALineATimeForPrograms) {
  Start();
  const Done done = Distroctl("workers A --watch --count 2 --interval 100ms --output json");
  EXPECT_EQ(done.code, kExitDone) << done.error;
  const std::vector<std::string> lines = absl::StrSplit(done.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << done.out;
  for (const std::string& line : lines) EXPECT_TRUE(ParseJson(line).ok()) << line;
}

TEST_F(AggregatorCommandsTest, CheckOfAHealthyOne) {
  Start();
  const Done done = Distroctl("check A --http H --require_run --output json");
  EXPECT_EQ(done.code, kExitDone) << done.out << done.error;
  EXPECT_TRUE(done.json()["ok"].get<bool>());
  EXPECT_THAT(Distroctl("check A --http H").out,
              AllOf(HasSubstr("SERVING"), HasSubstr("metrics"), HasSubstr("ready")));
}

TEST_F(AggregatorCommandsTest, CheckTellsWhatIsMissing) {
  StartEmpty();
  EXPECT_EQ(Distroctl("check A").code, kExitDone) << "no run yet is a warning";
  const Done strict = Distroctl("check A --require_run");
  EXPECT_EQ(strict.code, kExitFault);
  EXPECT_THAT(strict.error, HasSubstr("failed: run"));
  // Not an HTTP side, but a port that answers otherwise.
  const Done other = Distroctl("check A --http A --timeout 3s");
  EXPECT_EQ(other.code, kExitFault);
  EXPECT_THAT(other.error, HasSubstr("metrics"));
  EXPECT_EQ(Distroctl("check 127.0.0.1:1 --timeout 3s").code, kExitFault);
  EXPECT_EQ(Distroctl("check A --http nowhere").code, kExitUsage);
}

TEST_F(AggregatorCommandsTest, CheckTellsWhenItDrains) {
  Start();
  server_->Drain();
  const Done done = Distroctl("check A");
  EXPECT_EQ(done.code, kExitFault);
  EXPECT_THAT(done.out, HasSubstr("not SERVING"));
}

TEST_F(AggregatorCommandsTest, CheckConnectionShowsEveryStep) {
  StartEmpty();
  EXPECT_THAT(Distroctl("check-connection A").out,
              AllOf(HasSubstr("STEP     RESULT"), HasSubstr("http2    ok"), HasSubstr("SERVING")));
  const auto json = Distroctl("check-connection A --output json").json();
  EXPECT_TRUE(json["ok"].get<bool>());
  EXPECT_EQ(json["addresses"][0], "127.0.0.1");
  EXPECT_FALSE(json.contains("fault"));
  EXPECT_FALSE(json.contains("certificate")) << "plaintext has none";
  EXPECT_EQ(Distroctl("check-connection A --timeout 0s").code, kExitUsage);
}

TEST_F(AggregatorCommandsTest, NamesFaultOfConnection) {
  StartEmpty();
  const Done done = Distroctl("check-connection H --output json");
  EXPECT_EQ(done.code, 14) << done.error;
  EXPECT_FALSE(done.json()["ok"].get<bool>());
  EXPECT_EQ(done.json()["fault"]["reason"], "other_service");
  EXPECT_THAT(done.json()["fault"]["remedy"].get<std::string>(), HasSubstr("7700"));
  EXPECT_EQ(done.json()["steps"].back()["result"], "failed");
  EXPECT_THAT(done.error, HasSubstr("a web server answers"));
  for (const char* command : {"run show H", "workers H", "bench-link H"})
    EXPECT_EQ(Distroctl(command).code, 14) << command;
  EXPECT_THAT(Distroctl("check H").out, HasSubstr("a web server answers"));
}

TEST_F(AggregatorCommandsTest, BenchLinkPrintsRatesAndAPrediction) {
  Start();
  const Done done =
      Distroctl("bench-link A --update_bytes 200000 --result_bytes 400000 --output json");
  EXPECT_EQ(done.code, kExitDone) << done.error;
  EXPECT_EQ(done.json()["up_alone"]["bytes"], 200000) << done.out;
  EXPECT_FALSE(done.json()["straggler"].get<bool>());
  EXPECT_EQ(Distroctl("bench-link A --transfer_limit 1ms").code, kExitUsage);
}

TEST(WorkersReportTest, RatesAreDifferencesAndAFreshProcessCountsFromZero) {
  WorkersSample before, now;
  before.at = absl::UnixEpoch();
  now.at = before.at + absl::Seconds(2);
  v1::WorkerInfo* worker = before.list.add_workers();
  worker->set_name("w1");
  worker->mutable_telemetry()->set_sent_bytes(1000);
  worker->mutable_telemetry()->set_tokens(500);
  worker = now.list.add_workers();
  worker->set_name("w1");
  worker->mutable_telemetry()->set_sent_bytes(5000);
  worker->mutable_telemetry()->set_tokens(100);
  now.list.add_workers()->set_name("w2");
  const Report report = WorkersReport(now, &before);
  EXPECT_EQ(report.json["workers"][0]["sent_bytes_per_second"], 2000);
  EXPECT_EQ(report.json["workers"][0]["tokens_per_second"], 50);
  EXPECT_FALSE(report.json["workers"][1].contains("tokens_per_second"));
  for (const char* key :
       {"next_round", "silence_seconds", "loss", "tokens", "sent_bytes", "received_bytes"}) {
    EXPECT_TRUE(report.json["workers"][1][key].is_null()) << key << ": it has said nothing";
  }
  EXPECT_THAT(report.text, ::testing::ContainsRegex("w2 +[a-z]+ +- +- +- +- +- +- +- +- +-"));
  EXPECT_THAT(report.text, AllOf(HasSubstr("2.00 kB"), HasSubstr("SENT/S")));
}

}  // namespace
}  // namespace distro::tools
