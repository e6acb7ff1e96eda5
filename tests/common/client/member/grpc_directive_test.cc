// The aggregator's directives to a worker, and aggregators that were replaced by a newer one.
#include <thread>

#include "common/base/reason.h"
#include "tests/common/client/member/exchange_fixture.h"

namespace distro {
namespace {

class DirectiveTest : public GrpcExchangeTest {
 protected:
  void Direct(v1::Directive directive, const std::string& reason = "") {
    aggregator_->Change([&](AggregatorState& state) {
      state.heartbeat_response.set_directive(directive);
      state.heartbeat_response.set_reason(reason);
    });
  }
  // Waits for heartbeats that are sent after this call.
  void AwaitHeartbeats() {
    const size_t seen = aggregator_->state().heartbeats.size();
    ASSERT_TRUE(aggregator_->Await(
        [seen](const AggregatorState& state) { return state.heartbeats.size() >= seen + 3; }));
  }
  void SetEpoch(uint64_t epoch) {
    aggregator_->Change([epoch](AggregatorState& state) {
      state.join_response.set_epoch(epoch);
      state.heartbeat_response.set_epoch(epoch);
    });
  }
};

TEST_F(DirectiveTest, StopsReplacedWorker) {
  Begin({StreamScript()});
  Direct(v1::DIRECTIVE_REPLACED);
  EXPECT_EQ(ReasonOf(exchange_->Next().status()), "replaced");
  exchange_->Leave("replaced");
  EXPECT_TRUE(aggregator_->state().leaves.empty());
}

TEST_F(DirectiveTest, StopsQuarantinedWorker) {
  Begin({StreamScript()});
  Direct(v1::DIRECTIVE_QUARANTINED, "three invalid updates");
  const absl::Status status = exchange_->Next().status();
  EXPECT_EQ(ReasonOf(status), "quarantined");
  EXPECT_EQ(status.message(), "three invalid updates");
  exchange_->Leave("quarantined");
  EXPECT_TRUE(aggregator_->state().leaves.empty());
}

TEST_F(DirectiveTest, HearsQuarantineFromUpload) {
  aggregator_->Change([](AggregatorState& state) {
    state.uploads = {
        {.refuse = Refusal(absl::StatusCode::kPermissionDenied, "quarantined", "evicted"),
         .held = {}}};
  });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  EXPECT_EQ(ReasonOf(exchange_->Next().status()), "quarantined");
}

TEST_F(DirectiveTest, EndsSessionOnResync) {
  SetEpoch(3);
  Begin({StreamScript()});
  // Otherwise the first session may play the script of the second.
  ASSERT_TRUE(aggregator_->Await(
      [](const AggregatorState& state) { return !state.subscriptions.empty(); }));
  Direct(v1::DIRECTIVE_RESYNC, "tensor a differs");
  const absl::Status status = exchange_->Next().status();
  EXPECT_EQ(ReasonOf(status), "diverged");
  EXPECT_EQ(status.message(), "tensor a differs");
  Direct(v1::DIRECTIVE_CONTINUE);
  aggregator_->Change([&](AggregatorState& state) {
    state.streams = {{FramesOf({0}, 3), false, {}}};
  });
  v1::JoinRequest request = Request();
  request.set_run_id("run-1");
  ASSERT_TRUE(exchange_->Join(request).ok());
  ASSERT_TRUE(exchange_->Follow(&layout_, RoundId(0), 0).ok());
  ExpectCommit(0);
  EXPECT_EQ(aggregator_->state().joins.back().epoch(), 3u);
  EXPECT_TRUE(aggregator_->state().leaves.empty());
}

// A worker without parameters has nothing to discard.
TEST_F(DirectiveTest, IgnoresResyncBeforeFollow) {
  MakeExchange();
  ASSERT_TRUE(exchange_->Join(Request()).ok());
  Direct(v1::DIRECTIVE_RESYNC);
  AwaitHeartbeats();
  Direct(v1::DIRECTIVE_CONTINUE);
  AwaitHeartbeats();
  aggregator_->Change([&](AggregatorState& state) {
    state.streams = {{FramesOf({0}), false, {}}};
  });
  ASSERT_TRUE(exchange_->Follow(&layout_, RoundId(0), 0).ok());
  ExpectCommit(0);
}

TEST_F(DirectiveTest, EndsOnPrunedOrDivergedLog) {
  for (const char* reason : {"pruned", "diverged"}) {
    Begin({{{}, true, Refusal(absl::StatusCode::kFailedPrecondition, reason)}});
    EXPECT_EQ(ReasonOf(exchange_->Next().status()), reason);
  }
}

TEST_F(DirectiveTest, LogsDrainAndPauseOnce) {
  Begin({StreamScript()});
  Direct(v1::DIRECTIVE_DRAIN, "maintenance");
  ASSERT_TRUE(lines_.Await("aggregator is about to stop"));
  AwaitHeartbeats();
  aggregator_->Change([](AggregatorState& state) {
    state.heartbeat_response.set_directive(v1::DIRECTIVE_CONTINUE);
    state.heartbeat_response.set_run_state(v1::RUN_STATE_PAUSED);
  });
  ASSERT_TRUE(lines_.Await("the run is paused"));
  AwaitHeartbeats();
  aggregator_->Change([](AggregatorState& state) {
    state.heartbeat_response.set_run_state(v1::RUN_STATE_TRAINING);
  });
  ASSERT_TRUE(lines_.Await("the run continues"));
  EXPECT_EQ(lines_.Count("aggregator is about to stop"), 1);
  EXPECT_EQ(lines_.Count("the run is paused"), 1);
}

TEST_F(DirectiveTest, SendsHighestEpochSeen) {
  Begin({StreamScript()});
  SetEpoch(7);
  ASSERT_TRUE(aggregator_->Await([](const AggregatorState& state) {
    return !state.heartbeats.empty() && state.heartbeats.back().epoch() == 7;
  }));
  aggregator_->Change([](AggregatorState& state) {
    state.heartbeat_response.set_directive(v1::DIRECTIVE_REJOIN);
    state.streams.push_back({{}, true, grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut")});
    state.streams.push_back(StreamScript());
  });
  ASSERT_TRUE(
      aggregator_->Await([](const AggregatorState& state) { return state.joins.size() >= 2; }));
  EXPECT_EQ(aggregator_->state().joins[1].epoch(), 7u);
  EXPECT_EQ(aggregator_->state().joins[1].run_id(), "run-1");
  RestartAggregator();  // ends the subscription
  ASSERT_TRUE(aggregator_->Await([](const AggregatorState& state) {
    return state.subscriptions.size() >= 2 && state.subscriptions.back().epoch() == 7;
  }));
}

// An aggregator that was cut off continues to answer; this worker ignores it.
TEST_F(DirectiveTest, IgnoresHeartbeatOfLowerEpoch) {
  SetEpoch(5);
  Begin({{FramesOf({0}, 5), false, {}}});
  ExpectCommit(0);
  SetEpoch(4);
  Direct(v1::DIRECTIVE_REPLACED);
  ASSERT_TRUE(lines_.Await("aggregator unreachable"));
  AwaitHeartbeats();
  EXPECT_FALSE(exchange_->Ready());
  EXPECT_GE(lines_.Count("fenced"), 1);
  SetEpoch(5);
  Direct(v1::DIRECTIVE_QUARANTINED);
  EXPECT_EQ(ReasonOf(exchange_->Next().status()), "quarantined");
}

TEST_F(DirectiveTest, IgnoresJoinOfLowerEpoch) {
  SetEpoch(4);
  MakeExchange();
  v1::JoinRequest request = Request();
  request.set_run_id("run-1");
  request.set_epoch(5);
  std::thread newer([this] {
    EXPECT_TRUE(
        aggregator_->Await([](const AggregatorState& state) { return state.joins.size() >= 2; }));
    SetEpoch(5);
  });
  const absl::StatusOr<v1::JoinResponse> response = exchange_->Join(request);
  newer.join();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->epoch(), 5u);
}

// The aggregator reports that it was replaced: the newer one answers at its address, over another
// connection.
TEST_F(DirectiveTest, ReconnectsWhenFenced) {
  const grpc::Status fenced = Refusal(absl::StatusCode::kFailedPrecondition, "fenced");
  aggregator_->Change([&](AggregatorState& state) {
    state.join_failures = {fenced};
    state.uploads = {{.refuse = fenced, .held = {}}};
  });
  Begin({{{}, true, fenced}, {{OpenFrame(0)}, false, {}}});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(aggregator_->Await([](const AggregatorState& state) {
    return state.seen_uploads.size() >= 2 && state.subscriptions.size() >= 2;
  }));
  const AggregatorState state = aggregator_->state();
  for (const char* rpc : {"Join", "SubscribeRounds", "UploadUpdate"}) {
    const std::vector<std::string>& peers = state.peers.at(rpc);
    ASSERT_GE(peers.size(), 2u) << rpc;
    EXPECT_NE(peers[0], peers[1]) << rpc;
  }
}

TEST_F(DirectiveTest, ReconnectsForFencedHeartbeat) {
  aggregator_->Change([](AggregatorState& state) {
    state.heartbeat_failures = {Refusal(absl::StatusCode::kFailedPrecondition, "fenced")};
  });
  Begin({{FramesOf({0}), false, {}}});
  AwaitHeartbeats();
  const std::vector<std::string> peers = aggregator_->state().peers.at("Heartbeat");
  ASSERT_GE(peers.size(), 2u);
  EXPECT_NE(peers[0], peers[1]);
}

}  // namespace
}  // namespace distro
