// Scripted workers on threads of one process.
#include "common/simulation/local_exchange.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/rounds.h"
#include "common/method/methods.h"
#include "common/method/signs/combine.h"
#include "common/method/signs/payload.h"
#include "common/run/run_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/plain_updates.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/worker/scripted_update.h"

namespace distro {
namespace {

using ::distro::testing::Combine;
using ::distro::testing::WeightedUpdate;
using ::testing::ElementsAre;

constexpr int kRounds = 5;

LocalRun MakeRun(int workers, const std::string& more = "") {
  LocalRun run;
  run.config = *ParseRunConfig(absl::StrCat(
      R"({"name": "test", "rounds": )", kRounds,
      R"(, "sequence_length": 8, "samples_per_worker": 3, "segment_blocks": 2, "method": "signs",
                                                 "start_workers": )",
      workers, more, "}"));
  run.model_config_json = "{}";
  run.layout = std::make_shared<const Layout>(testing::SmallLayout());
  run.method = *MethodOf(run.config).MakeRounds(run.config, run.layout, run.model_config_json);
  return run;
}

std::string Name(int worker) { return absl::StrCat("worker-", worker); }

v1::JoinRequest Request(int worker, const std::string& data = "data") {
  v1::JoinRequest request;
  request.mutable_worker()->set_name(Name(worker));
  request.mutable_worker()->set_incarnation(100 + worker);
  request.set_data_fingerprint(data);
  return request;
}

// All observations of one worker.
struct Seen {
  std::vector<OpenedRound> opened;
  std::vector<CommittedRound> committed;
  absl::Status end;
};

// Takes part until the end. `abstains`: whether it abstains in a round.
Seen TakePart(LocalExchange* exchange, int worker, const Layout& layout,
              bool (*abstains)(int worker, uint64_t round)) {
  Seen seen;
  while (true) {
    absl::StatusOr<RoundEvent> event = exchange->Next();
    if (!event.ok()) {
      seen.end = event.status();
      return seen;
    }
    if (auto* committed = std::get_if<CommittedRound>(&*event)) {
      seen.committed.push_back(*committed);
      continue;
    }
    const auto& opened = std::get<OpenedRound>(*event);
    seen.opened.push_back(opened);
    const int k = static_cast<int>(opened.open.step().kept_per_block());
    exchange->Upload(testing::ScriptedUpdate(layout, opened.round, Name(worker), k,
                                             abstains(worker, opened.round.value())));
  }
}

std::vector<Seen> RunAll(LocalAggregator* aggregator, int workers,
                         bool (*abstains)(int, uint64_t)) {
  std::vector<Seen> seen(workers);
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<LocalExchange>> exchanges;
  for (int w = 0; w < workers; ++w)
    exchanges.push_back(std::make_unique<LocalExchange>(aggregator));
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      ASSERT_TRUE(exchanges[w]->Join(Request(w)).ok());
      ASSERT_TRUE(exchanges[w]->Follow(aggregator->run().layout.get(), RoundId(0), 0).ok());
      seen[w] = TakePart(exchanges[w].get(), w, *aggregator->run().layout, abstains);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return seen;
}

bool Never(int, uint64_t) { return false; }

class LocalExchangeTest : public ::testing::TestWithParam<int> {};

TEST_P(LocalExchangeTest, GivesEqualRoundsToWorkers) {
  const int workers = GetParam();
  LocalAggregator aggregator(MakeRun(workers));
  const std::vector<Seen> seen = RunAll(&aggregator, workers, Never);
  for (const Seen& one : seen) {
    EXPECT_EQ(one.end.code(), absl::StatusCode::kOutOfRange) << one.end;
    ASSERT_EQ(one.opened.size(), size_t{kRounds});
    ASSERT_EQ(one.committed.size(), size_t{kRounds});
    for (int t = 0; t < kRounds; ++t) EXPECT_EQ(one.committed[t].hash, seen[0].committed[t].hash);
  }
}

// The votes of each segment are the sum of the decoded updates.
TEST_P(LocalExchangeTest, SumsUpdates) {
  const int workers = GetParam();
  LocalAggregator aggregator(MakeRun(workers));
  const Layout& layout = *aggregator.run().layout;
  const int k = static_cast<int>(aggregator.run().config.kept_per_block());
  const std::vector<Seen> seen = RunAll(&aggregator, workers, Never);
  for (const CommittedRound& round : seen[0].committed) {
    for (uint32_t s = 0; s < layout.segments(); ++s) {
      std::vector<SignUpdate> updates;
      for (int w = 0; w < workers; ++w) {
        updates.push_back(
            testing::ScriptedSegment(layout, round.round(), SegmentId(s), Name(w), k));
      }
      std::vector<WeightedUpdate> weighted;
      for (const SignUpdate& update : updates) weighted.push_back({.update = &update});
      const PayloadIdentity identity{layout.manifest().short_hash(), round.round(), SegmentId(s)};
      EXPECT_EQ(*round.payloads[s], EncodeVotes(identity, Combine(weighted)));
      for (int w = 0; w < workers; ++w)
        EXPECT_TRUE(round.Included(round.MemberIndex(Name(w)), SegmentId(s)));
    }
  }
}

TEST_P(LocalExchangeTest, RecordsAreChainedAndSamplesAreKnownTwoRoundsAhead) {
  const int workers = GetParam();
  LocalAggregator aggregator(MakeRun(workers));
  const std::vector<Seen> seen = RunAll(&aggregator, workers, Never);
  uint64_t next_sample = 0;
  for (int t = 0; t < kRounds; ++t) {
    const v1::RoundOpen& open = seen[0].opened[t].open;
    ASSERT_EQ(open.slots_size(), workers);
    for (const v1::Slot& slot : open.slots()) {
      EXPECT_EQ(slot.first_sample(), next_sample);
      next_sample += slot.samples();
    }
    const v1::RoundHeader& header = *seen[0].committed[t].header;
    if (t > 0) {
      EXPECT_EQ(header.predecessor_hash(), seen[0].committed[t - 1].hash);
    }
    if (t + 2 < kRounds) {
      EXPECT_EQ(header.slots(0).SerializeAsString(),
                seen[0].opened[t + 2].open.slots(0).SerializeAsString());
    }
    EXPECT_EQ(header.members(0).incarnation(), 100u);
    EXPECT_EQ(header.members(0).state_hash(), testing::kScriptedStateHash);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, LocalExchangeTest, ::testing::Values(1, 2, 3, 4));

TEST(LocalExchangeRulesTest, LeavesOutAbstainers) {
  LocalAggregator aggregator(MakeRun(2));
  const std::vector<Seen> seen = RunAll(&aggregator, 2, [](int worker, uint64_t round) {
    return round == 3 || (worker == 1 && round == 1);
  });
  ASSERT_EQ(seen[0].committed.size(), size_t{kRounds});
  const CommittedRound& one = seen[0].committed[1];
  EXPECT_TRUE(one.Included(0, SegmentId(0)));
  EXPECT_FALSE(one.Included(1, SegmentId(0)));
  EXPECT_TRUE(one.header->members(1).abstained());
  EXPECT_EQ(one.header->members(1).incarnation(), 0u);
  const CommittedRound& nobody = seen[0].committed[3];
  EXPECT_EQ(nobody.header->segments(0).included(), std::string(1, '\0'));
}

TEST(LocalExchangeRulesTest, DownloadTopCutsTheVotesAsTheAggregatorDoes) {
  LocalAggregator aggregator(MakeRun(
      2, R"(, "download": "top", "kept_votes_per_block": 2, "seed": 7, "kept_per_block": 4)"));
  const Layout& layout = *aggregator.run().layout;
  const std::vector<Seen> seen = RunAll(&aggregator, 2, Never);
  const CommittedRound& round = seen[1].committed[2];
  const SignUpdate a = testing::ScriptedSegment(layout, RoundId(2), SegmentId(1), Name(0), 4);
  const SignUpdate b = testing::ScriptedSegment(layout, RoundId(2), SegmentId(1), Name(1), 4);
  const std::vector<WeightedUpdate> both = {{.update = &a}, {.update = &b}};
  const Votes kept =
      KeepTop(Combine(both), 2, 7, RoundId(2), layout.SegmentFirstBlock(SegmentId(1)));
  EXPECT_EQ(*round.payloads[1],
            EncodeVotes({layout.manifest().short_hash(), RoundId(2), SegmentId(1)}, kept));
}

TEST(LocalExchangeRulesTest, GoesOnWithoutLeaver) {
  LocalAggregator aggregator(MakeRun(2));
  LocalExchange stays(&aggregator), goes(&aggregator);
  ASSERT_TRUE(stays.Join(Request(0)).ok());
  ASSERT_TRUE(goes.Join(Request(1)).ok());
  goes.Leave("done");
  const Seen seen = TakePart(&stays, 0, *aggregator.run().layout, Never);
  ASSERT_EQ(seen.committed.size(), size_t{kRounds});
  EXPECT_EQ(seen.committed[0].header->members(1).state(), v1::MEMBER_STATE_LEFT);
  EXPECT_EQ(seen.committed[4].header->members_size(), 1);
}

TEST(LocalExchangeRulesTest, RefusesWhoDoesNotFit) {
  LocalAggregator aggregator(MakeRun(2));
  LocalExchange a(&aggregator), b(&aggregator), c(&aggregator);
  ASSERT_TRUE(a.Join(Request(0)).ok());
  EXPECT_EQ(b.Join(Request(0)).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(b.Join(Request(1, "other data")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(b.Join(Request(1)).ok());
  EXPECT_EQ(c.Join(Request(2)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(a.Follow(aggregator.run().layout.get(), RoundId(1), 3).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(LocalExchangeRulesTest, EndsWorkerOfInvalidUpdate) {
  LocalAggregator aggregator(MakeRun(1));
  LocalExchange exchange(&aggregator);
  ASSERT_TRUE(exchange.Join(Request(0)).ok());
  ASSERT_TRUE(exchange.Next().ok());
  RoundUpdate update =
      testing::ScriptedUpdate(*aggregator.run().layout, RoundId(0), Name(0), 4, false);
  update.payloads[1] = std::make_shared<const std::string>("no payload");
  exchange.Upload(update);
  EXPECT_EQ(exchange.Next().status().code(), absl::StatusCode::kInvalidArgument);
}

// Every block with one position of this code, or an empty record.
RoundUpdate DeltasOf(const Layout& layout, RoundId round, std::optional<uint8_t> code) {
  RoundUpdate update{.round = round, .payloads = {}};
  for (uint32_t s = 0; s < layout.segments(); ++s) {
    const size_t blocks = layout.SegmentBlocks(SegmentId(s));
    const DeltaUpdate sent = {.k = 1,
                              .positions = std::vector<uint16_t>(blocks, code ? 3 : 0),
                              .signs = std::vector<int8_t>(blocks, code ? -1 : 0),
                              .codes = std::vector<uint8_t>(blocks, code.value_or(0))};
    update.payloads.push_back(std::make_shared<const std::string>(
        EncodeDeltaUpdate(IdentifyPayload(layout, round, SegmentId(s)), sent)));
  }
  return update;
}

LocalRun MakeDeltaRun(int workers) {
  LocalRun run = MakeRun(workers);
  run.config = *ParseRunConfig(absl::StrCat(R"({"name": "test", "rounds": 5, "sequence_length": 8,
    "samples_per_worker": 3, "segment_blocks": 2, "kept_per_block": 1, "start_workers": )",
                                            workers, "}"));
  run.method = MakeDeltaRounds(run.config, run.layout, {false, false, false});
  return run;
}

TEST(LocalExchangeRulesTest, EndsWorkerOfDeltasAboveCap) {
  const LocalRun run = MakeDeltaRun(1);
  for (const int above : {0, 1}) {
    LocalAggregator aggregator(run);
    LocalExchange exchange(&aggregator);
    ASSERT_TRUE(exchange.Join(Request(0)).ok());
    const absl::StatusOr<RoundEvent> opened = exchange.Next();
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto cap =
        static_cast<uint8_t>(std::get<OpenedRound>(*opened).open.step().deltas().caps()[0]);
    exchange.Upload(DeltasOf(*run.layout, RoundId(0), static_cast<uint8_t>(cap + above)));
    const absl::StatusOr<RoundEvent> next = exchange.Next();
    EXPECT_EQ(next.status().code(),
              above == 0 ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument)
        << next.status();
  }
}

TEST(LocalExchangeRulesTest, KeepsMediansDespiteEmptyRecords) {
  const LocalRun run = MakeDeltaRun(3);
  LocalAggregator aggregator(run);
  LocalExchange a(&aggregator), b(&aggregator), c(&aggregator);
  ASSERT_TRUE(a.Join(Request(0)).ok() && b.Join(Request(1)).ok() && c.Join(Request(2)).ok());
  for (const RoundId round : {RoundId(0), RoundId(1)}) {
    ASSERT_TRUE(std::holds_alternative<OpenedRound>(*a.Next()));
    for (LocalExchange* honest : {&a, &b}) honest->Upload(DeltasOf(*run.layout, round, 100));
    c.Upload(DeltasOf(*run.layout, round,
                      round == RoundId(0) ? std::optional<uint8_t>(100) : std::nullopt));
    const RoundEvent committed = *a.Next();
    EXPECT_THAT(std::get<CommittedRound>(committed).header->scale_medians(),
                ElementsAre(101, 101, 101))
        << round.value();
  }
}

TEST(LocalExchangeRulesTest, StopEndsNext) {
  LocalAggregator aggregator(MakeRun(2));
  LocalExchange exchange(&aggregator);
  ASSERT_TRUE(exchange.Join(Request(0)).ok());
  std::thread stopper([&] { exchange.Stop(); });
  EXPECT_EQ(exchange.Next().status().code(), absl::StatusCode::kCancelled);
  stopper.join();
}

TEST(LocalExchangeRulesTest, CopiesTheSnapshotAndChecksIt) {
  testing::ScratchFolder folder;
  LocalRun run = MakeRun(1);
  run.snapshot_path = folder.File("initial");
  ASSERT_TRUE(WriteFileAtomically(run.snapshot_path, "parameters").ok());
  const Sha256Digest digest = Sha256("parameters");
  run.snapshot.set_sha256(digest.data(), digest.size());
  LocalAggregator aggregator(run);
  LocalExchange exchange(&aggregator);
  ASSERT_TRUE(exchange.DownloadSnapshot(run.snapshot, folder.File("copy")).ok());
  EXPECT_EQ(ReadFile(folder.File("copy")).value_or(""), "parameters");
  run.snapshot.set_sha256(std::string(32, 'x'));
  EXPECT_EQ(exchange.DownloadSnapshot(run.snapshot, folder.File("other")).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
