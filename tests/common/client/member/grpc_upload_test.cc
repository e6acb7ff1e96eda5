// Uploads through cuts, new epochs and refusals.
#include <map>

#include "tests/common/client/member/exchange_fixture.h"

namespace distro {
namespace {

std::string Segments(const SeenUpload& upload) {
  std::vector<uint32_t> segments;
  for (const v1::UploadFrame& frame : upload.frames) segments.push_back(frame.segment());
  return absl::StrJoin(segments, " ");
}

bool OneComplete(const AggregatorState& state) {
  return !state.seen_uploads.empty() && state.seen_uploads.back().complete;
}

TEST_F(GrpcExchangeTest, SendsTheHeaderThenTheSegmentsFromTheRoundsFirstOn) {
  Begin({StreamScript()});
  RoundUpdate update = Update(4);
  update.tensor_hashes = {1, 2};
  exchange_->Upload(std::move(update));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  const SeenUpload upload = aggregator_->state().seen_uploads[0];
  EXPECT_EQ(upload.header.worker().name(), "alice");
  EXPECT_EQ(upload.header.epoch(), 1u);
  EXPECT_EQ(upload.header.round(), 4u);
  EXPECT_EQ(upload.header.state_hash(), 9u);
  EXPECT_EQ(upload.header.loss(), 0.5);
  EXPECT_EQ(upload.header.tensor_hashes_size(), 2);
  EXPECT_EQ(Segments(upload), "1 2 0");
}

TEST_F(GrpcExchangeTest, CutsPayloadsIntoFramesThatASlowLinkCarriesInTime) {
  Begin({StreamScript()});
  constexpr size_t kBytes = (512 << 10) * 2 + 1;
  exchange_->Upload(Update(0, kBytes));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  std::map<uint32_t, std::string> payloads;
  const AggregatorState state = aggregator_->state();
  for (const v1::UploadFrame& frame : state.seen_uploads[0].frames) {
    EXPECT_LE(frame.data().size(), size_t{128} << 10);
    EXPECT_EQ(frame.payload_bytes(), kBytes);
    EXPECT_EQ(frame.offset(), payloads[frame.segment()].size());
    payloads[frame.segment()] += frame.data();
  }
  for (uint32_t i = 0; i < layout_.segments(); ++i)
    EXPECT_EQ(payloads[i], std::string(kBytes, static_cast<char>(i)));
  EXPECT_EQ(exchange_->stats().sent_payload_bytes, kBytes * layout_.segments());
}

TEST_F(GrpcExchangeTest, LeavesOutWhatTheAggregatorHolds) {
  aggregator_->Change([](AggregatorState& state) {
    state.uploads = {{.refuse = {}, .held = {0, 2}}};
  });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  EXPECT_EQ(Segments(aggregator_->state().seen_uploads[0]), "1");
}

TEST_F(GrpcExchangeTest, SegmentsThatCameTooLateAreLoggedAndNotSentAgain) {
  aggregator_->Change(
      [](AggregatorState& state) { state.uploads = {{.refuse = {}, .held = {0}, .late = true}}; });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(lines_.Await(
      "segments were late: what they held is sent with a later update round=0 segments=2"));
  EXPECT_EQ(aggregator_->state().seen_uploads.size(), 1u);
}

TEST_F(GrpcExchangeTest, SendsAbstentionAsHeader) {
  Begin({StreamScript()});
  exchange_->Upload(
      {.round = RoundId(0), .state_hash = 9, .loss = 0, .abstain = true, .payloads = {}});
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  const SeenUpload upload = aggregator_->state().seen_uploads[0];
  EXPECT_TRUE(upload.header.abstain());
  EXPECT_TRUE(upload.frames.empty());
}

TEST_F(GrpcExchangeTest, OffersTheUpdateAgainAfterACut) {
  aggregator_->Change([](AggregatorState& state) {
    state.uploads = {
        {.refuse = {}, .held = {}, .cut_after_frames = 2},
        {.refuse = grpc::Status(grpc::StatusCode::UNAVAILABLE, "not open yet"), .held = {}},
        {.refuse = {}, .held = {0}}};
  });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  const AggregatorState state = aggregator_->state();
  ASSERT_EQ(state.seen_uploads.size(), 3u);
  EXPECT_EQ(Segments(state.seen_uploads[2]), "1 2");
  const auto retries = exchange_->stats().retries[static_cast<int>(RetriedRpc::kUpload)];
  EXPECT_EQ(retries[RetryCodeIndex(absl::StatusCode::kUnavailable)], 2u);
}

// One corrupted bit in transit must not exclude this worker; the second time it is the worker's
// fault.
TEST_F(GrpcExchangeTest, OffersMalformedUpdateOnceMore) {
  const grpc::Status malformed = Refusal(absl::StatusCode::kInvalidArgument, "malformed");
  aggregator_->Change([&](AggregatorState& state) {
    state.uploads = {{.refuse = malformed, .held = {}},
                     {.refuse = {}, .held = {0}},
                     {.refuse = malformed, .held = {}},
                     {.refuse = malformed, .held = {}}};
  });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  exchange_->Upload(Update(1));
  ASSERT_TRUE(lines_.Await("update rejected round=1"));
  EXPECT_EQ(aggregator_->state().seen_uploads.size(), 4u);
}

// Cut in the middle of a segment by an aggregator that then starts again with the first segment in
// its log.
TEST_F(GrpcExchangeTest, FinishesUpdateAfterRestart) {
  aggregator_->Change([](AggregatorState& state) {
    state.uploads.assign(1, {.refuse = {}, .held = {}, .cut_after_frames = 1});
    for (int i = 0; i < 1000; ++i) {
      state.uploads.push_back(
          {.refuse = grpc::Status(grpc::StatusCode::UNAVAILABLE, "about to stop"), .held = {}});
    }
  });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(aggregator_->Await(
      [](const AggregatorState& state) { return state.seen_uploads.size() >= 2; }));
  RestartAggregator([](AggregatorState& state) {
    state.join_response.set_epoch(2);
    state.heartbeat_response.set_epoch(2);
    state.seen_uploads.resize(1);
    state.uploads.assign(1000, {.refuse = {}, .held = {0}});
    state.streams.push_back(StreamScript());
  });
  const auto resumed = [](const AggregatorState& state) {
    return state.seen_uploads.back().header.epoch() == 2 && OneComplete(state);
  };
  ASSERT_TRUE(aggregator_->Await(resumed));
  const SeenUpload upload = aggregator_->state().seen_uploads.back();
  EXPECT_EQ(Segments(upload), "1 2");
  for (const v1::UploadFrame& frame : upload.frames)
    EXPECT_EQ(frame.data(), *Update(0).payloads[frame.segment()]);
  EXPECT_EQ(upload.header.state_hash(), Update(0).state_hash);
}

TEST_F(GrpcExchangeTest, OffersTheUpdateToANewEpochUntilItsRoundIsCommitted) {
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  aggregator_->Change([&](AggregatorState& state) {
    state.heartbeat_response.set_epoch(2);
    state.streams.push_back({FramesOf({0}, 3), false, {}});
  });
  ASSERT_TRUE(aggregator_->Await([](const AggregatorState& state) {
    return state.seen_uploads.size() == 2 && OneComplete(state);
  }));
  EXPECT_EQ(aggregator_->state().seen_uploads[1].header.epoch(), 2u);
}

// Frames of epoch 3 commit round 0: its update is not offered to epoch 3, that of round 1 is.
TEST_F(GrpcExchangeTest, ForgetsTheUpdateOfACommittedRound) {
  std::vector<v1::SubscribeRoundsResponse> frames = FramesOf({0}, 1);
  frames.push_back(OpenFrame(1, 3));
  Begin({{frames, false, {}}});
  ExpectCommit(0);
  ASSERT_TRUE(exchange_->Next().ok());
  exchange_->Upload(Update(0));
  exchange_->Upload(Update(1));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  const AggregatorState state = aggregator_->state();
  ASSERT_EQ(state.seen_uploads.size(), 1u);
  EXPECT_EQ(state.seen_uploads[0].header.round(), 1u);
  EXPECT_EQ(state.seen_uploads[0].header.epoch(), 3u);
  EXPECT_EQ(lines_.Count("update was late"), 1);
}

// Every stream of the update was cut, the last perhaps after its last segment. The commit tells
// whether it counts.
TEST_F(GrpcExchangeTest, DoesNotCallCommittedUpdateLate) {
  aggregator_->Change([](AggregatorState& state) {
    state.uploads.assign(1000, {.refuse = {}, .held = {}, .cut_after_frames = 1});
  });
  Begin({});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(
      aggregator_->Await([](const AggregatorState& state) { return !state.seen_uploads.empty(); }));
  aggregator_->Change([&](AggregatorState& state) {
    state.streams.push_back({FramesOf({0}, 1), false, {}});
  });
  ExpectCommit(0);
  aggregator_->Change([](AggregatorState& state) { state.uploads.clear(); });
  exchange_->Upload(Update(1));
  // An attempt for round 0 may still be under way when streams are no longer cut.
  ASSERT_TRUE(aggregator_->Await([](const AggregatorState& state) {
    return OneComplete(state) && state.seen_uploads.back().header.round() == 1;
  }));
  EXPECT_EQ(lines_.Count("update was late"), 0);
}

TEST_F(GrpcExchangeTest, DropsLateUpdate) {
  aggregator_->Change([](AggregatorState& state) {
    state.uploads = {
        {.refuse = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "round 0 is over"),
         .held = {}}};
  });
  aggregator_->Change([](AggregatorState& state) {
    state.join_response.set_head_round(1);
    state.heartbeat_response.set_head_round(1);
  });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(lines_.Await("update was late"));
  exchange_->Upload(Update(1));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  const AggregatorState state = aggregator_->state();
  for (size_t i = 1; i < state.seen_uploads.size(); ++i)
    EXPECT_EQ(state.seen_uploads[i].header.round(), 1u);
  EXPECT_EQ(lines_.Count("update was late"), 1);
}

TEST_F(GrpcExchangeTest, OtherBytesForTheRoundAreRejectedOnce) {
  aggregator_->Change([](AggregatorState& state) {
    state.uploads = {
        {.refuse = grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "other bytes"), .held = {}}};
  });
  Begin({StreamScript()});
  exchange_->Upload(Update(0));
  ASSERT_TRUE(lines_.Await("update rejected"));
  exchange_->Upload(Update(1));
  ASSERT_TRUE(aggregator_->Await(OneComplete));
  EXPECT_EQ(aggregator_->state().seen_uploads.size(), 2u);
}

}  // namespace
}  // namespace distro
