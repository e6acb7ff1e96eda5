#include "server/session/worker_reports.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

v1::HeartbeatRequest Heartbeat(const std::string& name, uint64_t incarnation, uint64_t sequence,
                               uint64_t tokens) {
  v1::HeartbeatRequest request;
  request.mutable_worker()->set_name(name);
  request.mutable_worker()->set_incarnation(incarnation);
  request.set_sequence(sequence);
  request.set_next_round(sequence);
  request.mutable_telemetry()->set_tokens(tokens);
  return request;
}

class WorkerReportsTest : public ::testing::Test {
 protected:
  int Take(const v1::HeartbeatRequest& request, absl::Duration now = absl::ZeroDuration()) {
    return reports_.Take(request, absl::UnixEpoch() + absl::Hours(1) + now, now);
  }
  uint64_t Tokens() const { return reports_.List(absl::ZeroDuration())[0].telemetry->tokens(); }

  WorkerReports reports_{3};
};

TEST_F(WorkerReportsTest, KeepsTheLastReadingsByName) {
  Take(Heartbeat("b", 1, 1, 10));
  Take(Heartbeat("a", 1, 1, 20));
  Take(Heartbeat("b", 1, 2, 30), absl::Seconds(5));
  const auto list = reports_.List(absl::Seconds(5));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].worker, "a");
  EXPECT_EQ(list[1].worker, "b");
  EXPECT_EQ(list[1].telemetry->tokens(), 30u);
  EXPECT_EQ(list[1].next_round, 2u);
  EXPECT_EQ(list[1].received_at, absl::UnixEpoch() + absl::Hours(1) + absl::Seconds(5));
}

TEST_F(WorkerReportsTest, IgnoresStaleHeartbeat) {
  Take(Heartbeat("a", 1, 5, 10));
  Take(Heartbeat("a", 1, 4, 20));
  Take(Heartbeat("a", 1, 5, 30));
  EXPECT_EQ(Tokens(), 10u);
}

TEST_F(WorkerReportsTest, CountersGoBackWithAnotherProcessOnly) {
  Take(Heartbeat("a", 1, 1, 10));
  EXPECT_EQ(Take(Heartbeat("a", 1, 2, 9)), 1);
  EXPECT_EQ(Tokens(), 10u);
  EXPECT_EQ(Take(Heartbeat("a", 2, 1, 3)), 0);  // a reset, which rate() understands
  EXPECT_EQ(Tokens(), 3u);
}

TEST_F(WorkerReportsTest, ReadingsThatAreNoNumbersAreDroppedAndCounted) {
  v1::HeartbeatRequest request = Heartbeat("a", 1, 1, 10);
  request.mutable_telemetry()->set_loss(std::numeric_limits<double>::quiet_NaN());
  request.mutable_telemetry()->mutable_phases()->set_wait(-1);
  EXPECT_EQ(Take(request), 2);
  EXPECT_FALSE(reports_.List(absl::ZeroDuration())[0].telemetry->has_loss());
}

TEST_F(WorkerReportsTest, AreGoneWhenTheWorkerLeavesOrIsSilentForTenMinutes) {
  Take(Heartbeat("a", 1, 1, 10));
  Take(Heartbeat("b", 1, 1, 10), absl::Seconds(1));
  v1::WorkerIdentity other;
  other.set_name("b");
  other.set_incarnation(2);
  reports_.Leave(other);  // not this process
  EXPECT_EQ(reports_.List(absl::Minutes(10) - absl::Nanoseconds(1)).size(), 2u);
  EXPECT_EQ(reports_.List(absl::Minutes(10)).size(), 1u);
  other.set_incarnation(1);
  reports_.Leave(other);
  EXPECT_EQ(reports_.List(absl::Minutes(10)).size(), 0u);
}

TEST_F(WorkerReportsTest, DropsLongestSilent) {
  for (int i = 0; i < 3; ++i)
    Take(Heartbeat(absl::StrCat("w", i), 1, 1, 1), absl::Seconds(i == 1 ? 0 : 9));
  Take(Heartbeat("new", 1, 1, 1), absl::Seconds(10));
  const auto list = reports_.List(absl::Seconds(10));
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].worker, "new");
  EXPECT_EQ(list[1].worker, "w0");
  EXPECT_EQ(list[2].worker, "w2");
}

}  // namespace
}  // namespace distro::server
