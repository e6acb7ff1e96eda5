#include <memory>
#include <utility>

#include "common/base/reason.h"
#include "common/client/await_call.h"
#include "common/client/connection.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/loopback.h"

namespace distro {
namespace {

class ConnectionTest : public ::testing::Test {
 protected:
  // Whether a call with this status makes the next ones use another channel.
  bool Reconnects(const absl::Status& status) {
    const auto before = connection_->stub();
    connection_->Heed(status);
    return connection_->stub() != before;
  }

  const absl::Status silent_ = absl::DeadlineExceededError("no answer within 10s");
  testing::FakeClock clock_;
  const std::unique_ptr<Connection> connection_ =
      *Connection::Open({.aggregator = "127.0.0.1:1", .insecure = true}, &clock_);
};

TEST_F(ConnectionTest, StaysWhateverFails) {
  EXPECT_FALSE(Reconnects(absl::OkStatus()));
  EXPECT_FALSE(Reconnects(silent_));
  clock_.Advance(absl::Hours(9));
  EXPECT_FALSE(Reconnects(silent_));
}

TEST_F(ConnectionTest, LeavesAnAggregatorThatHasBeenReplaced) {
  EXPECT_TRUE(Reconnects(ErrorWithReason(absl::StatusCode::kUnavailable, "fenced", "older")));
}

// gRPC's timers stand still then.
TEST_F(ConnectionTest, ConnectsAgainAfterTheClockWasSetBack) {
  clock_.SetBack(absl::Milliseconds(500));
  EXPECT_FALSE(Reconnects(silent_)) << "as time services do all the time";
  clock_.SetBack(absl::Hours(3));
  EXPECT_TRUE(Reconnects(silent_));
  EXPECT_TRUE(Reconnects(silent_)) << "the new channel's timers stand still, too";
  EXPECT_FALSE(Reconnects(absl::OkStatus()));
  EXPECT_FALSE(Reconnects(ErrorWithReason(absl::StatusCode::kUnavailable, "draining", "stops")))
      << "an aggregator has answered";
  EXPECT_FALSE(Reconnects(absl::InvalidArgumentError("malformed"))) << "the same";
  clock_.Advance(absl::Hours(3));
  EXPECT_FALSE(Reconnects(silent_)) << "the old time is reached";
}

// It was right at first, then wrong, then right again.
TEST_F(ConnectionTest, ComparesWithTheLastLook) {
  clock_.SetBack(-absl::Hours(3));
  EXPECT_FALSE(Reconnects(silent_));
  clock_.SetBack(absl::Hours(3));
  EXPECT_TRUE(Reconnects(silent_));
}

TEST(AwaitCallTest, EndsACallThatNobodyAnswers) {
  const testing::HeldPort nobody;
  const auto connection = *Connection::Open({.aggregator = nobody.address(), .insecure = true});
  const auto stub = connection->stub();
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const v1::HeartbeatRequest request;
  v1::HeartbeatResponse response;
  const absl::Status status = AwaitCall(&context, absl::Milliseconds(150), [&](AnswerTaker done) {
    stub->async()->Heartbeat(&context, &request, &response, std::move(done));
  });
  EXPECT_EQ(status, absl::DeadlineExceededError("no answer within 150ms"));
}

}  // namespace
}  // namespace distro
