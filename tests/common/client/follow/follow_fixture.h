// A follower without a session, and an aggregator that plays a script.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/client/connection.h"
#include "common/client/first_contact.h"
#include "common/client/follow/follower.h"
#include "tests/common/client/fake_aggregator.h"

namespace distro {

class FollowTest : public ::testing::Test {
 protected:
  // Expects that the first call of `rpc` was refused, and that the second used another connection.
  void ExpectAnotherConnection(const std::string& rpc) {
    const AggregatorState state = aggregator_.state();
    const std::vector<std::string>& peers = state.peers.at(rpc);
    ASSERT_EQ(peers.size(), 2u) << rpc;
    EXPECT_NE(peers[0], peers[1]) << rpc;
  }

  const grpc::Status fenced_ = Refusal(absl::StatusCode::kFailedPrecondition, "fenced");
  FakeAggregator aggregator_;
  Log log_{LogLevel::kError};
  ClientState state_;
  TransferMeter meter_;
  const Follower follower_ = {.state = &state_,
                              .meter = &meter_,
                              .log = &log_,
                              .clock = Clock::Real(),
                              .backoff = {absl::Milliseconds(2), absl::Milliseconds(20)}};
  FirstContact contact_{
      {aggregator_.address(), true}, absl::InfiniteDuration(), &log_, Clock::Real()};
  const std::unique_ptr<Connection> connection_ = *Connection::Open({aggregator_.address(), true});
};

}  // namespace distro
