// Joining, heartbeats, stopping and leaving.
#include <thread>

#include "common/base/file.h"
#include "common/base/reason.h"
#include "tests/common/client/member/exchange_fixture.h"

namespace distro {
namespace {

const grpc::Status kAway(grpc::StatusCode::UNAVAILABLE, "no run yet");

TEST_F(GrpcExchangeTest, JoinTriesAgainWhileTheAggregatorIsAwayAndSaysWhyOnce) {
  aggregator_->Change([](AggregatorState& state) { state.join_failures = {kAway, kAway, kAway}; });
  MakeExchange();
  const absl::StatusOr<v1::JoinResponse> response = exchange_->Join(Request());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->run_id(), "run-1");
  const auto retries = exchange_->stats().retries[static_cast<int>(RetriedRpc::kJoin)];
  EXPECT_EQ(retries[RetryCodeIndex(absl::StatusCode::kUnavailable)], 3u);
  EXPECT_EQ(exchange_->stats().TotalRetries(), 3u);
  EXPECT_EQ(lines_.Count("waiting for the aggregator"), 1);
}

TEST_F(GrpcExchangeTest, JoinEndsWhenNobodyAnswersBeforeTheTimeout) {
  aggregator_.reset();
  options_.connect_timeout = absl::Nanoseconds(1);
  MakeExchange();
  const absl::Status end = exchange_->Join(Request()).status();
  EXPECT_EQ(ReasonOf(end), "unreachable") << end;
  EXPECT_EQ(lines_.Count("waiting for the aggregator"), 0);
}

// The flags are wrong, and waiting does not fix them.
TEST_F(GrpcExchangeTest, JoinEndsAtOnceWhereTlsMeetsPlaintext) {
  testing::ScratchFolder folder;
  options_.channel.insecure = false;
  options_.channel.tls.token_file = folder.File("token");
  ASSERT_TRUE(WriteFileAtomically(folder.File("token"), std::string(43, 'a')).ok());
  options_.connect_timeout = absl::InfiniteDuration();
  MakeExchange();
  EXPECT_EQ(ReasonOf(exchange_->Join(Request()).status()), "tls_mismatch");
}

TEST_F(GrpcExchangeTest, JoinReturnsARefusalAtOnce) {
  aggregator_->Change([](AggregatorState& state) {
    state.join_failures = {grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "other data")};
  });
  MakeExchange();
  EXPECT_EQ(exchange_->Join(Request()).status(), absl::FailedPreconditionError("other data"));
  EXPECT_EQ(aggregator_->state().joins.size(), 1u);
}

TEST_F(GrpcExchangeTest, StopEndsAJoinThatWaits) {
  aggregator_.reset();
  MakeExchange();
  std::thread stopper([this] {
    EXPECT_TRUE(lines_.Await("waiting for the aggregator"));
    exchange_->Stop();
  });
  EXPECT_EQ(exchange_->Join(Request()).status().code(), absl::StatusCode::kCancelled);
  stopper.join();
  EXPECT_EQ(exchange_->Join(Request()).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(GrpcExchangeTest, StopEndsNextAndLeaveStillTellsTheAggregator) {
  Begin({StreamScript()});
  std::thread stopper([this] {
    EXPECT_TRUE(aggregator_->Await(
        [](const AggregatorState& state) { return !state.subscriptions.empty(); }));
    exchange_->Stop();
  });
  EXPECT_EQ(exchange_->Next().status().code(), absl::StatusCode::kCancelled);
  stopper.join();
  exchange_->Leave("interrupted");
  const AggregatorState state = aggregator_->state();
  ASSERT_EQ(state.leaves.size(), 1u);
  EXPECT_EQ(state.leaves[0].worker().name(), "alice");
  EXPECT_EQ(state.leaves[0].reason(), "interrupted");
}

TEST_F(GrpcExchangeTest, AfterLeavingAnotherSessionMayBegin) {
  Begin({StreamScript()});
  exchange_->Leave("diverged");
  ASSERT_TRUE(exchange_->Join(Request()).ok());
  aggregator_->Change([&](AggregatorState& state) {
    state.streams = {{FramesOf({0}), false, {}}};
  });
  ASSERT_TRUE(exchange_->Follow(&layout_, RoundId(0), 0).ok());
  ExpectCommit(0);
}

TEST_F(GrpcExchangeTest, HeartbeatsCarryTheReportAndRise) {
  options_.telemetry = [] {
    v1::WorkerTelemetry telemetry;
    telemetry.set_tokens(123);
    return telemetry;
  };
  Begin({StreamScript()});
  exchange_->Report(RoundId(2), 55);
  ASSERT_TRUE(aggregator_->Await([](const AggregatorState& state) {
    return !state.heartbeats.empty() && state.heartbeats.back().telemetry().tokens() == 123 &&
           state.heartbeats.back().next_round() == 2;
  }));
  const AggregatorState state = aggregator_->state();
  EXPECT_EQ(state.heartbeats.back().next_round(), 2u);
  EXPECT_EQ(state.heartbeats.back().log_hash(), 55u);
  for (size_t i = 0; i < state.heartbeats.size(); ++i)
    EXPECT_EQ(state.heartbeats[i].sequence(), i + 1);
}

TEST_F(GrpcExchangeTest, JoinsAgainWhenAskedTo) {
  Begin({StreamScript()});
  aggregator_->Change([](AggregatorState& state) {
    state.join_response.set_epoch(2);
    state.heartbeat_response.set_epoch(2);
    state.heartbeat_response.set_directive(v1::DIRECTIVE_REJOIN);
  });
  ASSERT_TRUE(
      aggregator_->Await([](const AggregatorState& state) { return state.joins.size() >= 2; }));
  aggregator_->Change([](AggregatorState& state) {
    state.heartbeat_response.set_directive(v1::DIRECTIVE_CONTINUE);
    state.streams.push_back(StreamScript());
  });
  const AggregatorState state = aggregator_->state();
  EXPECT_EQ(state.joins[1].run_id(), "run-1");
  EXPECT_EQ(state.joins[1].worker().incarnation(), 5u);
  EXPECT_TRUE(lines_.Await("joined again"));
}

TEST_F(GrpcExchangeTest, EndsWhenRejoinFindsOtherRun) {
  Begin({StreamScript()});
  aggregator_->Change([](AggregatorState& state) {
    state.join_response.set_run_id("run-2");
    state.heartbeat_response.set_directive(v1::DIRECTIVE_REJOIN);
  });
  const absl::Status status = exchange_->Next().status();
  EXPECT_EQ(ReasonOf(status), "other_run");
  EXPECT_NE(status.message().find("run-2"), std::string::npos) << status;
}

TEST_F(GrpcExchangeTest, JoinWaitsAsLongAsItIsAskedTo) {
  aggregator_->Change([](AggregatorState& state) {
    state.join_failures = {
        Refusal(absl::StatusCode::kUnavailable, "draining", "stops", absl::Milliseconds(200))};
  });
  MakeExchange();
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(exchange_->Join(Request()).ok());
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(200));
}

// Of the aggregator's limits: a rate of calls, and a subscription whose place a newer one took.
TEST_F(GrpcExchangeTest, WaitsAtLimits) {
  const grpc::Status rate = Refusal(absl::StatusCode::kResourceExhausted, "limit", "too many calls",
                                    absl::Milliseconds(100));
  const grpc::Status place = Refusal(absl::StatusCode::kUnavailable, "limit", "a newer stream");
  aggregator_->Change([&](AggregatorState& state) {
    state.join_failures = {rate};
    state.heartbeat_failures = {rate, rate};
  });
  const absl::Time begin = absl::Now();
  Begin({{{}, true, rate}, {{}, true, place}, {FramesOf({0}), false, {}}});
  ExpectCommit(0);
  ASSERT_TRUE(aggregator_->Await([](const AggregatorState& state) {
    return state.heartbeat_failures.empty() && state.heartbeats.size() >= 4;
  }));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(300));  // Join, and two heartbeats
  EXPECT_EQ(aggregator_->state().joins.size(), 2u);
}

// The subscription would wait for an hour; a heartbeat that works again ends that.
TEST_F(GrpcExchangeTest, SubscribesAgainOnceAggregatorIsBack) {
  options_.backoff = {absl::Hours(1), absl::Hours(1)};
  Begin({{{}, true, kAway}, {FramesOf({0}), false, {}}});
  ASSERT_TRUE(lines_.Await("subscription interrupted"));
  aggregator_->Change([](AggregatorState& state) { state.heartbeat_failures = {kAway}; });
  ExpectCommit(0);
}

TEST_F(GrpcExchangeTest, ReopensLaggingSubscription) {
  options_.subscription_patience = absl::ZeroDuration();
  aggregator_->Change([](AggregatorState& state) { state.heartbeat_response.set_head_round(1); });
  Begin({StreamScript(), {FramesOf({0}), false, {}}});
  ExpectCommit(0);
  EXPECT_GE(aggregator_->state().subscriptions.size(), 2u);
  EXPECT_TRUE(lines_.Await("no frame of round 0 comes, and the aggregator is at round 1"));
}

}  // namespace
}  // namespace distro
