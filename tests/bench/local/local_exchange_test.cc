// Scripted workers on threads of one process.
#include "bench/local/local_exchange.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/base/version.h"
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

namespace distro::server {
namespace {

using testing::Combine;
using ::testing::ElementsAre;
using testing::WeightedUpdate;

constexpr int kRounds = 5;

RunIdentity MakeRun(int workers, const std::string& more = "") {
  RunIdentity run;
  run.run_id = "test-local";
  run.config = *ParseRunConfig(absl::StrCat(
      R"({"name": "test", "rounds": )", kRounds,
      R"(, "sequence_length": 8, "samples_per_worker": 3, "segment_blocks": 2, "method": "signs",
                                                 "start_workers": )",
      workers, more, "}"));
  run.model_config_json = "{}";
  run.initial_snapshot.set_state_hash(testing::kScriptedStateHash);
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
  request.set_version(std::string(Version()));
  return request;
}

std::unique_ptr<LocalAggregator> Aggregate(const RunIdentity& run) {
  return *LocalAggregator::Create(run);
}

// Joins and takes part, with the parameters of the snapshot.
void Enter(LocalExchange* exchange, int worker, const Layout& layout) {
  ASSERT_TRUE(exchange->Join(Request(worker)).ok());
  ASSERT_TRUE(exchange->Follow(&layout, RoundId(0), 0).ok());
  exchange->Report(RoundId(0), 0);
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
      Enter(exchanges[w].get(), w, *aggregator->run().layout);
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
  const auto aggregator = Aggregate(MakeRun(workers));
  const std::vector<Seen> seen = RunAll(aggregator.get(), workers, Never);
  for (const Seen& one : seen) {
    EXPECT_EQ(one.end.code(), absl::StatusCode::kOutOfRange) << one.end;
    ASSERT_EQ(one.opened.size(), size_t{kRounds});
    ASSERT_EQ(one.committed.size(), size_t{kRounds});
    for (int t = 0; t < kRounds; ++t) EXPECT_EQ(one.committed[t].hash, seen[0].committed[t].hash);
  }
}

TEST_P(LocalExchangeTest, RepeatsRecordsBitForBit) {
  const int workers = GetParam();
  const auto first = Aggregate(MakeRun(workers)), second = Aggregate(MakeRun(workers));
  const std::vector<Seen> a = RunAll(first.get(), workers, Never);
  const std::vector<Seen> b = RunAll(second.get(), workers, Never);
  EXPECT_EQ(a[0].committed.back().hash, b[0].committed.back().hash);
}

// The votes of each segment are the sum of the decoded updates.
TEST_P(LocalExchangeTest, SumsUpdates) {
  const int workers = GetParam();
  const auto aggregator = Aggregate(MakeRun(workers));
  const Layout& layout = *aggregator->run().layout;
  const int k = static_cast<int>(aggregator->run().config.kept_per_block());
  const std::vector<Seen> seen = RunAll(aggregator.get(), workers, Never);
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
  const auto aggregator = Aggregate(MakeRun(workers));
  const std::vector<Seen> seen = RunAll(aggregator.get(), workers, Never);
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
  const auto aggregator = Aggregate(MakeRun(2));
  const std::vector<Seen> seen = RunAll(aggregator.get(), 2, [](int worker, uint64_t round) {
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
  const auto aggregator = Aggregate(MakeRun(
      2, R"(, "download": "top", "kept_votes_per_block": 2, "seed": 7, "kept_per_block": 4)"));
  const Layout& layout = *aggregator->run().layout;
  const std::vector<Seen> seen = RunAll(aggregator.get(), 2, Never);
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
  const auto aggregator = Aggregate(MakeRun(2));
  const Layout& layout = *aggregator->run().layout;
  LocalExchange stays(aggregator.get()), goes(aggregator.get());
  Enter(&stays, 0, layout);
  Enter(&goes, 1, layout);
  goes.Leave("done");
  const Seen seen = TakePart(&stays, 0, layout, Never);
  ASSERT_EQ(seen.committed.size(), size_t{kRounds});
  EXPECT_EQ(seen.committed[0].header->members(1).state(), v1::MEMBER_STATE_LEFT);
  EXPECT_EQ(seen.committed[4].header->members_size(), 1);
}

TEST(LocalExchangeRulesTest, RefusesWhoDoesNotFit) {
  const auto aggregator = Aggregate(MakeRun(2));
  LocalExchange a(aggregator.get()), b(aggregator.get());
  ASSERT_TRUE(a.Join(Request(0)).ok());
  EXPECT_EQ(ReasonOf(b.Join(Request(1, "other data")).status()), "other_data");
  const Layout& layout = *aggregator->run().layout;
  EXPECT_EQ(ReasonOf(a.Follow(&layout, RoundId(1), 3)), "diverged");
}

TEST(LocalExchangeRulesTest, EndsProcessOfWorkerThatCameAgain) {
  const auto aggregator = Aggregate(MakeRun(1));
  const Layout& layout = *aggregator->run().layout;
  LocalExchange first(aggregator.get()), second(aggregator.get());
  Enter(&first, 0, layout);
  ASSERT_TRUE(first.Next().ok());
  v1::JoinRequest again = Request(0);
  again.mutable_worker()->set_incarnation(7);
  ASSERT_TRUE(second.Join(again).ok());
  EXPECT_EQ(ReasonOf(first.Next().status()), "replaced");
  ASSERT_TRUE(second.Follow(&layout, RoundId(0), 0).ok());
  second.Report(RoundId(0), 0);
  const Seen seen = TakePart(&second, 0, layout, Never);
  EXPECT_EQ(seen.committed.size(), size_t{kRounds});
  EXPECT_EQ(seen.end.code(), absl::StatusCode::kOutOfRange) << seen.end;
}

// Of a run that is done.
TEST(LocalExchangeRulesTest, RepeatsEveryRoundToWhoComesLater) {
  const auto aggregator = Aggregate(MakeRun(1));
  const std::vector<Seen> seen = RunAll(aggregator.get(), 1, Never);
  LocalExchange later(aggregator.get());
  ASSERT_TRUE(later.Join(Request(1)).ok());
  ASSERT_TRUE(later.Follow(aggregator->run().layout.get(), RoundId(0), 0).ok());
  std::vector<uint64_t> hashes;
  absl::StatusOr<RoundEvent> event = later.Next();
  for (; event.ok(); event = later.Next()) {
    if (const auto* round = std::get_if<CommittedRound>(&*event)) hashes.push_back(round->hash);
  }
  EXPECT_EQ(event.status().code(), absl::StatusCode::kOutOfRange) << event.status();
  ASSERT_EQ(hashes.size(), size_t{kRounds});
  for (int t = 0; t < kRounds; ++t) EXPECT_EQ(hashes[t], seen[0].committed[t].hash);
}

TEST(LocalExchangeRulesTest, EndsWorkerOfInvalidUpdate) {
  const auto aggregator = Aggregate(MakeRun(1));
  LocalExchange exchange(aggregator.get());
  Enter(&exchange, 0, *aggregator->run().layout);
  ASSERT_TRUE(exchange.Next().ok());
  RoundUpdate update =
      testing::ScriptedUpdate(*aggregator->run().layout, RoundId(0), Name(0), 4, false);
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

RunIdentity MakeDeltaRun(int workers) {
  RunIdentity run = MakeRun(workers);
  run.config = *ParseRunConfig(absl::StrCat(R"({"name": "test", "rounds": 5, "sequence_length": 8,
    "samples_per_worker": 3, "segment_blocks": 2, "kept_per_block": 1, "start_workers": )",
                                            workers, "}"));
  run.method = MakeDeltaRounds(run.config, run.layout, {false, false, false});
  run.initial_snapshot.set_state_hash(0);
  return run;
}

TEST(LocalExchangeRulesTest, EndsWorkerOfDeltasAboveCap) {
  const RunIdentity run = MakeDeltaRun(1);
  for (const int above : {0, 1}) {
    const auto aggregator = Aggregate(run);
    LocalExchange exchange(aggregator.get());
    Enter(&exchange, 0, *run.layout);
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
  const RunIdentity run = MakeDeltaRun(3);
  const auto aggregator = Aggregate(run);
  LocalExchange a(aggregator.get()), b(aggregator.get()), c(aggregator.get());
  Enter(&a, 0, *run.layout);
  Enter(&b, 1, *run.layout);
  Enter(&c, 2, *run.layout);
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
  const auto aggregator = Aggregate(MakeRun(2));
  LocalExchange exchange(aggregator.get());
  Enter(&exchange, 0, *aggregator->run().layout);
  std::thread stopper([&] { exchange.Stop(); });
  EXPECT_EQ(exchange.Next().status().code(), absl::StatusCode::kCancelled);
  stopper.join();
}

TEST(LocalExchangeRulesTest, CopiesSnapshot) {
  testing::ScratchFolder folder;
  RunIdentity run = MakeRun(1);
  run.initial_snapshot_path = folder.File("initial");
  const auto aggregator = Aggregate(run);
  LocalExchange exchange(aggregator.get());
  EXPECT_FALSE(exchange.DownloadSnapshot(run.initial_snapshot, folder.File("copy")).ok());
  ASSERT_TRUE(WriteFileAtomically(run.initial_snapshot_path, "parameters").ok());
  ASSERT_TRUE(exchange.DownloadSnapshot(run.initial_snapshot, folder.File("copy")).ok());
  EXPECT_EQ(ReadFile(folder.File("copy")).value_or(""), "parameters");
}

}  // namespace
}  // namespace distro::server
