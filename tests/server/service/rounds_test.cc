// Rounds over real gRPC: upload, result, hash chain, late joiner, deadline, restart.
#include "gmock/gmock.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using RoundsTest = ServerTest;

v1::RunConfig ConfigFor(int workers, uint64_t rounds = 10) {
  v1::RunConfig config = SmallConfig();
  config.set_start_workers(workers);
  config.set_rounds(rounds);
  return config;
}

// The votes of the payloads, as any correct combiner has them.
std::map<std::pair<int64_t, int>, int> Sum(const Layout& layout, uint64_t round, SegmentId segment,
                                           const std::vector<uint64_t>& seeds) {
  std::map<std::pair<int64_t, int>, int> sum;
  for (const uint64_t seed : seeds) {
    const SignUpdate update = SomeUpdate(layout.SegmentBlocks(segment), 4, seed + segment.value());
    for (size_t i = 0; i < update.positions.size(); ++i) {
      sum[{static_cast<int64_t>(i) / 4, update.positions[i]}] += update.signs[i];
    }
  }
  std::erase_if(sum, [](const auto& entry) { return entry.second == 0; });
  return sum;
}

std::map<std::pair<int64_t, int>, int> Decoded(const Layout& layout, const CommittedRound& round,
                                               SegmentId segment) {
  const auto votes = DecodeVotes(*round.payloads[segment.value()],
                                 {.layout_hash = layout.manifest().short_hash(),
                                  .round = round.round(),
                                  .segment = segment,
                                  .blocks = static_cast<uint32_t>(layout.SegmentBlocks(segment)),
                                  .k = 4});
  EXPECT_TRUE(votes.ok()) << votes.status();
  std::map<std::pair<int64_t, int>, int> all;
  for (int64_t b = 0; b < votes->blocks(); ++b) {
    for (uint32_t e = votes->offsets[b]; e < votes->offsets[b + 1]; ++e)
      all[{b, votes->positions[e]}] = votes->values[e];
  }
  return all;
}

TEST_F(RoundsTest, SumsVotesOfTwo) {
  Start(ConfigFor(2));
  auto a = NewActive("a");
  auto b = NewActive("b");
  auto from_a = a->Subscribe(&layout_);
  auto from_b = b->Subscribe(&layout_);
  const auto open = from_a->NextOpen();
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->open.slots_size(), 2);
  EXPECT_EQ(open->open.next_slots_size(), 2);
  EXPECT_FALSE(open->open.has_deadline());

  const UploadOutcome sent = a->Upload(0, Payloads(0, 100));
  EXPECT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.held, IsEmpty());
  EXPECT_THAT(sent.acks, ElementsAre(0, 1, 2));
  EXPECT_TRUE(b->Upload(0, Payloads(0, 200)).status.ok());

  const auto round_a = from_a->NextCommit();
  const auto round_b = from_b->NextCommit();
  ASSERT_TRUE(round_a.ok()) << round_a.status();
  ASSERT_TRUE(round_b.ok()) << round_b.status();
  EXPECT_EQ(round_a->hash, round_b->hash);
  EXPECT_EQ(round_a->header->members_size(), 2);
  for (uint32_t s = 0; s < layout_.segments(); ++s) {
    EXPECT_TRUE(round_a->Included(0, SegmentId(s)));
    EXPECT_TRUE(round_a->Included(1, SegmentId(s)));
    EXPECT_EQ(Decoded(layout_, *round_a, SegmentId(s)), Sum(layout_, 0, SegmentId(s), {100, 200}));
  }
  EXPECT_EQ(round_a->header->members(0).incarnation(), 7u);
}

TEST_F(RoundsTest, ChainsUntilRunEnds) {
  Start(ConfigFor(1, 4));
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  uint64_t hash = 0;
  for (uint64_t r = 0; r < 4; ++r) {
    const auto open = rounds->NextOpen();
    ASSERT_TRUE(open.ok()) << open.status();
    EXPECT_EQ(open->round, RoundId(r));
    ASSERT_TRUE(a->Upload(r, Payloads(r, r)).status.ok());
    const auto round = rounds->NextCommit();
    ASSERT_TRUE(round.ok()) << round.status();
    if (r > 0) {
      EXPECT_EQ(round->header->predecessor_hash(), hash);
    }
    EXPECT_EQ(round->header->slots_size(), r + 2 < 4 ? 1 : 0);
    hash = round->hash;
  }
  EXPECT_EQ(rounds->Next().status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(a->Heartbeat(4, hash).run_state(), v1::RUN_STATE_DONE);
}

TEST_F(RoundsTest, TakesLateJoiner) {
  v1::RunConfig config = ConfigFor(1);
  config.set_probation_rounds(0);
  Start(config);
  auto a = NewActive("a");
  auto from_a = a->Subscribe(&layout_);
  std::vector<uint64_t> hashes;
  for (uint64_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(from_a->NextOpen().ok());
    ASSERT_TRUE(a->Upload(r, Payloads(r, r)).status.ok());
    const auto round = from_a->NextCommit();
    ASSERT_TRUE(round.ok()) << round.status();
    hashes.push_back(round->hash);
  }
  ASSERT_TRUE(from_a->NextOpen().ok());

  auto b = NewWorker("b");
  ASSERT_TRUE(b->Join().ok());
  EXPECT_EQ(b->joined().head_round(), 3u);
  auto from_b = b->Subscribe(&layout_);
  for (uint64_t r = 0; r < 3; ++r) {
    const auto round = from_b->NextCommit();
    ASSERT_TRUE(round.ok()) << round.status();
    EXPECT_EQ(round->hash, hashes[r]);
  }
  b->Heartbeat(3, hashes[2]);
  // It has no samples in the open round, and in the next one neither; then it has.
  EXPECT_EQ(b->Upload(3, Payloads(3, 9)).status.code(), StatusCode::kFailedPrecondition);
  for (uint64_t r = 3; r < 5; ++r) {
    ASSERT_TRUE(a->Upload(r, Payloads(r, r)).status.ok());
    ASSERT_TRUE(from_a->NextCommit().ok());
    const auto open = from_a->NextOpen();
    ASSERT_TRUE(open.ok()) << open.status();
    EXPECT_EQ(open->open.slots_size(), r == 4 ? 2 : 1);
  }
  EXPECT_TRUE(b->Upload(5, Payloads(5, 9)).status.ok());
  ASSERT_TRUE(a->Upload(5, Payloads(5, 5)).status.ok());
  const auto round = from_a->NextCommit();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_TRUE(round->Included(1, SegmentId(0)));
}

TEST_F(RoundsTest, ClosesAtDeadlineWithoutWorker) {
  v1::RunConfig config = ConfigFor(2);
  config.mutable_round_deadline()->set_seconds(60);
  Start(config);
  auto a = NewActive("a");
  auto b = NewActive("b");
  auto rounds = a->Subscribe(&layout_);
  const auto open = rounds->NextOpen();
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->open.deadline().seconds(), 60);
  ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  std::vector<SharedBytes> partly = Payloads(0, 2);
  partly[0] = nullptr;
  partly[2] = nullptr;
  EXPECT_THAT(b->Upload(0, partly).acks, ElementsAre(1));
  Advance(absl::Seconds(61));
  auto round = rounds->NextCommit();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_FALSE(round->Included(1, SegmentId(0)));
  EXPECT_TRUE(round->Included(1, SegmentId(1)));
  EXPECT_EQ(round->header->members(1).state(), v1::MEMBER_STATE_LATE);
  EXPECT_EQ(round->header->reason(), "deadline");
  EXPECT_THAT(b->Upload(0, Payloads(0, 2)).status.message(), HasSubstr("round 0: is over"));

  // The next round does not wait for it. When its update is in time again, it is counted and
  // ACTIVE.
  ASSERT_TRUE(rounds->NextOpen().ok());
  ASSERT_TRUE(b->Upload(1, Payloads(1, 2)).status.ok());
  ASSERT_TRUE(a->Upload(1, Payloads(1, 1)).status.ok());
  round = rounds->NextCommit();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_TRUE(round->Included(1, SegmentId(0)));
  EXPECT_EQ(round->header->members(1).state(), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(RoundsTest, ClosesDespiteAbstention) {
  Start(ConfigFor(2));
  auto a = NewActive("a");
  auto b = NewActive("b");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  v1::UploadHeader header = b->Header(0);
  header.set_abstain(true);
  EXPECT_TRUE(b->Send(header, {}).status.ok());
  ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  const auto round = rounds->NextCommit();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_TRUE(round->header->members(1).abstained());
  EXPECT_FALSE(round->Included(1, SegmentId(0)));
}

TEST_F(RoundsTest, HasNoVotesIfAllAbstain) {
  Start(ConfigFor(1));
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  v1::UploadHeader header = a->Header(0);
  header.set_abstain(true);
  EXPECT_TRUE(a->Send(header, {}).status.ok());
  const auto round = rounds->NextCommit();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_THAT(Decoded(layout_, *round, SegmentId(0)), IsEmpty());
}

TEST_F(RoundsTest, AfterARestartTheRunGoesOnFromTheLog) {
  Start(ConfigFor(2));
  uint64_t hash = 0;
  std::string run_id;
  uint64_t epoch;
  {
    auto a = NewActive("a");
    auto b = NewActive("b");
    run_id = a->joined().run_id();
    epoch = a->joined().epoch();
    auto rounds = a->Subscribe(&layout_);
    ASSERT_TRUE(rounds->NextOpen().ok());
    ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
    ASSERT_TRUE(b->Upload(0, Payloads(0, 2)).status.ok());
    const auto round = rounds->NextCommit();
    ASSERT_TRUE(round.ok()) << round.status();
    hash = round->hash;
    ASSERT_TRUE(rounds->NextOpen().ok());
    ASSERT_TRUE(a->Upload(1, Payloads(1, 1)).status.ok());  // lost with the epoch
  }
  Start(ConfigFor(2));
  auto a = NewWorker("a");
  EXPECT_EQ(a->Heartbeat(1, hash).directive(), v1::DIRECTIVE_REJOIN);
  ASSERT_TRUE(a->Join().ok());
  EXPECT_EQ(a->joined().run_id(), run_id);
  EXPECT_GT(a->joined().epoch(), epoch);
  epoch = a->joined().epoch();
  EXPECT_EQ(a->joined().head_round(), 1u);
  auto rounds = a->Subscribe(&layout_, 1, hash);
  a->Heartbeat(1, hash);
  // The round waits for b, who has samples in it, and then has both.
  EXPECT_EQ(a->Upload(1, Payloads(1, 1)).status.code(), StatusCode::kUnavailable);
  auto b = NewWorker("b", 8);
  ASSERT_TRUE(b->Join().ok());
  b->Heartbeat(1, hash);
  const auto open = rounds->NextOpen();
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->epoch, EpochId(epoch));
  ASSERT_TRUE(a->Upload(1, Payloads(1, 1)).status.ok());
  ASSERT_TRUE(b->Upload(1, Payloads(1, 2)).status.ok());
  const auto round = rounds->NextCommit();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_EQ(round->header->predecessor_hash(), hash);
  EXPECT_EQ(round->header->epoch(), epoch);
}

TEST_F(RoundsTest, WhenAllWithSamplesHaveGoneOthersGetThem) {
  Start(ConfigFor(1));
  auto a = NewActive("a");
  {
    auto rounds = a->Subscribe(&layout_);
    ASSERT_TRUE(rounds->NextOpen().ok());
  }
  ASSERT_TRUE(a->Leave().ok());
  auto b = NewActive("b");
  auto rounds = b->Subscribe(&layout_);
  absl::StatusOr<OpenedRound> open = rounds->NextOpen();
  while (open.ok() && open->open.slots_size() == 1) open = rounds->NextOpen();
  if (!open.ok()) {  // it had subscribed before the round was opened again
    EXPECT_EQ(open.status().code(), StatusCode::kUnavailable) << open.status();
    rounds = b->Subscribe(&layout_);
    open = rounds->NextOpen();
  }
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->open.slots_size(), 2);
  ASSERT_TRUE(b->Upload(0, Payloads(0, 1)).status.ok());
  const auto round = rounds->NextCommit();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_EQ(round->header->members(1).name(), "b");
  EXPECT_TRUE(round->Included(1, SegmentId(0)));
}

}  // namespace
}  // namespace distro::testing
