#include "server/status/status_page.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatusPageTest, ShowsRunRoundAndWorkers) {
  RunStatus status;
  status.state = v1::RUN_STATE_TRAINING;
  status.reason = "waiting for b";
  status.round = RoundId(41);
  Worker worker{.name = "a", .state = v1::MEMBER_STATE_LATE, .reason = "missed the deadline"};
  worker.last_seen = absl::Seconds(3);
  status.now = absl::Seconds(5);
  status.workers.push_back(worker);
  const std::string page = StatusPage("run-1", 100, status);
  EXPECT_THAT(page, HasSubstr("<td>41 of 100</td>"));
  EXPECT_THAT(page, HasSubstr("<td>training</td>"));
  EXPECT_THAT(page, HasSubstr("<td>waiting for b</td>"));
  EXPECT_THAT(page, HasSubstr("<td>late</td><td>missed the deadline</td>"));
  EXPECT_THAT(page, HasSubstr("2 s</td>"));
}

TEST(StatusPageTest, TextOfOthersIsNeverMarkup) {
  RunStatus status;
  status.workers.push_back({.name = "a", .reason = "left: <script>alert('x')</script>"});
  EXPECT_THAT(StatusPage("run-1", 1, status), Not(HasSubstr("<script>")));
  EXPECT_EQ(EscapeHtml("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
}

TEST(StatusPageTest, SaysWhatToDoWithoutARun) {
  RunStatus status;
  status.state = v1::RUN_STATE_EMPTY;
  status.reason = "create a run";
  const std::string page = StatusPage("", 0, status);
  EXPECT_THAT(page, HasSubstr("none yet"));
  EXPECT_THAT(page, HasSubstr("create a run"));
}

}  // namespace
}  // namespace distro::server
