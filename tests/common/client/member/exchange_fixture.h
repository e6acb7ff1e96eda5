// A GrpcExchange of worker "alice" with a FakeAggregator: run "run-1" of 3 small rounds.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/checksum.h"
#include "common/client/member/grpc_exchange.h"
#include "tests/common/client/fake_aggregator.h"
#include "tests/testing/loopback.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"

namespace distro {

inline constexpr uint64_t kStartHash = 77;

// Lines of a Log, which a test can wait for.
class LogLines {
 public:
  Log* log() { return &log_; }
  bool Await(const std::string& text) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    absl::MutexLock lock(&mu_);
    while (CountLocked(text) == 0) {
      if (changed_.WaitWithDeadline(&mu_, deadline)) return CountLocked(text) > 0;
    }
    return true;
  }
  int Count(const std::string& text) {
    absl::MutexLock lock(&mu_);
    return CountLocked(text);
  }

 private:
  int CountLocked(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    int count = 0;
    for (const std::string& line : lines_) count += line.find(text) != std::string::npos;
    return count;
  }

  absl::Mutex mu_;
  absl::CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
  Log log_{LogLevel::kDebug, Clock::Real(), [this](absl::string_view line) {
             absl::MutexLock lock(&mu_);
             lines_.emplace_back(line);
             changed_.SignalAll();
           }};
};

class GrpcExchangeTest : public ::testing::Test {
 protected:
  GrpcExchangeTest() : layout_(testing::SmallLayout()) {
    uint64_t hash = kStartHash;
    for (uint64_t round = 0; round < 3; ++round) {
      rounds_.push_back(testing::BuildRound(layout_, RoundId(round), hash));
      hash = Xxh3(rounds_.back().header_bytes());
    }
    aggregator_->Change([&](AggregatorState& state) {
      state.join_response.set_run_id("run-1");
      state.join_response.mutable_config()->set_rounds(3);
      state.join_response.mutable_config()->set_segment_blocks(layout_.segment_blocks());
      state.join_response.set_epoch(1);
      state.join_response.mutable_heartbeat_interval()->set_nanos(20'000'000);
      state.heartbeat_response.set_epoch(1);
      state.heartbeat_response.set_directive(v1::DIRECTIVE_CONTINUE);
    });
    options_.channel = {aggregator_->address(), true};
    options_.backoff = {absl::Milliseconds(2), absl::Milliseconds(20)};
  }

  // Replaces the server at the same address, with script and record after `change`: calls in
  // progress break.
  void RestartAggregator(const std::function<void(AggregatorState&)>& change = [](auto&) {}) {
    AggregatorState state = aggregator_->state();
    aggregator_.reset();
    change(state);
    aggregator_ = std::make_unique<FakeAggregator>(port_.number(), state);
  }

  void MakeExchange() { exchange_ = *GrpcExchange::Create(options_, lines_.log()); }

  v1::JoinRequest Request() const {
    v1::JoinRequest request;
    request.mutable_worker()->set_name("alice");
    request.mutable_worker()->set_incarnation(5);
    return request;
  }

  // Joins and follows from round 0; the next subscriptions play `streams`.
  void Begin(const std::vector<StreamScript>& streams) {
    aggregator_->Change(
        [&](AggregatorState& state) { state.streams.assign(streams.begin(), streams.end()); });
    MakeExchange();
    ASSERT_TRUE(exchange_->Join(Request()).ok());
    ASSERT_TRUE(exchange_->Follow(&layout_, RoundId(0), 0).ok());
  }

  std::vector<v1::SubscribeRoundsResponse> FramesOf(const std::vector<int>& rounds,
                                                    uint64_t epoch = 1) const {
    std::vector<v1::SubscribeRoundsResponse> frames;
    for (const int round : rounds) {
      for (auto& frame : testing::Frames(rounds_[round], EpochId(epoch)))
        frames.push_back(std::move(frame));
    }
    return frames;
  }

  v1::SubscribeRoundsResponse OpenFrame(uint64_t round, uint64_t epoch = 1) const {
    v1::SubscribeRoundsResponse frame;
    frame.set_round(round);
    frame.set_epoch(epoch);
    *frame.mutable_open()->mutable_step() = rounds_[round].header.step();
    return frame;
  }

  // Expects the commit of `round` next.
  void ExpectCommit(uint64_t round) {
    const absl::StatusOr<RoundEvent> event = exchange_->Next();
    ASSERT_TRUE(event.ok()) << event.status();
    const auto* committed = std::get_if<CommittedRound>(&*event);
    ASSERT_NE(committed, nullptr);
    EXPECT_EQ(committed->round(), RoundId(round));
  }

  // One payload per segment: `bytes` long, each byte the segment's number.
  RoundUpdate Update(uint64_t round, size_t bytes = 10) const {
    RoundUpdate update{
        .round = RoundId(round), .state_hash = 9, .loss = 0.5, .abstain = false, .payloads = {}};
    for (uint32_t i = 0; i < layout_.segments(); ++i) {
      update.payloads.push_back(std::make_shared<const std::string>(bytes, static_cast<char>(i)));
    }
    return update;
  }

  const Layout layout_;
  std::vector<testing::BuiltRound> rounds_;
  LogLines lines_;
  const testing::HeldPort port_;
  std::unique_ptr<FakeAggregator> aggregator_ = std::make_unique<FakeAggregator>(port_.number());
  GrpcExchangeOptions options_;
  std::unique_ptr<GrpcExchange> exchange_;
};

}  // namespace distro
