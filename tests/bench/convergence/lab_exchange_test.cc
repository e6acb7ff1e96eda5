#include "bench/convergence/lab_exchange.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/convergence/virtual_workers.h"
#include "bench/local/local_aggregator.h"
#include "bench/wire/plain_votes.h"
#include "common/base/file.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/worker/training.h"

namespace distro::worker {
namespace {

constexpr int kWorkers = 3;
constexpr uint64_t kRounds = 8;

// The last point of a run of three workers with these links.
CurvePoint TrainOver(const std::vector<LabLink>& links) {
  const testing::TinyRun tiny;
  const server::RunIdentity run =
      *server::MakeLocalRun(tiny.Config(kWorkers, kRounds, /*overlap=*/0), tiny.checkpoint_dir(),
                            tiny.File("initial.safetensors"));
  const TokenSource tokens = *OpenTokens(tiny.text_path(), TokenFormat::kAuto);
  const absl::StatusOr<Curve> curve = RunVirtualWorkers(run, tokens, {.links = links});
  EXPECT_TRUE(curve.ok()) << curve.status();
  return curve.ok() ? curve->point(curve->points() - 1) : CurvePoint{};
}

CurvePoint Train(const LabLink& link) { return TrainOver(std::vector<LabLink>(kWorkers, link)); }

TEST(LabExchangeTest, MissedUpdatesAreNeitherSentNorApplied) {
  const CurvePoint all = Train(LabLink{});
  const CurvePoint some = Train({.miss = 0.5, .seed = 1});
  EXPECT_EQ(all.round, kRounds);
  EXPECT_LT(some.sent_bytes, all.sent_bytes);
  EXPECT_GT(some.sent_bytes, 0u);
  EXPECT_NE(some.held_out_loss, all.held_out_loss);
  EXPECT_EQ(Train({.miss = 1}).sent_bytes, 0u);
}

TEST(LabExchangeTest, CountsWorkerFromItsFirstRound) {
  const CurvePoint all = Train(LabLink{});
  const CurvePoint late = TrainOver({{.first_round = kRounds / 2}, {}, {}});
  EXPECT_EQ(late.sent_bytes, all.sent_bytes / 2);
}

TEST(LabExchangeTest, ReplacesSignsOfHostileWorker) {
  const CurvePoint honest = Train(LabLink{});
  const CurvePoint inverted = TrainOver({{}, {}, {.attack = "inverted"}});
  const CurvePoint random = TrainOver({{}, {}, {.seed = 1, .attack = "random"}});
  EXPECT_GT(inverted.held_out_loss, honest.held_out_loss);
  EXPECT_GT(inverted.held_out_loss, random.held_out_loss);
  EXPECT_EQ(inverted.sent_bytes, honest.sent_bytes);
}

TEST(LabExchangeTest, FeedbackOfMissedUpdatesChangesOnlyRunsThatMissSome) {
  EXPECT_EQ(Train({.feedback_of_missed = true}).held_out_loss, Train(LabLink{}).held_out_loss);
  EXPECT_NE(Train({.miss = 0.5, .seed = 1, .feedback_of_missed = true}).held_out_loss,
            Train({.miss = 0.5, .seed = 1}).held_out_loss);
}

TEST(LabExchangeTest, AppliesSignsOfOneVote) {
  const CurvePoint sums = Train(LabLink{});
  const CurvePoint signs = Train({.one_vote = true});
  EXPECT_LT(signs.received_bytes, sums.received_bytes);
  EXPECT_NE(signs.held_out_loss, sums.held_out_loss);
}

// Votes by block and position, added to what is there; zeros are left out.
void AddVotes(const std::string& path, std::map<std::pair<int64_t, int>, int>* sums) {
  const Votes votes = ParsePlain(ReadFile(path).value()).value();
  for (int64_t block = 0; block < votes.blocks(); ++block) {
    for (uint32_t i = votes.offsets[block]; i < votes.offsets[block + 1]; ++i) {
      const auto sum = sums->try_emplace({block, votes.positions[i]}, 0).first;
      if ((sum->second += votes.values[i]) == 0) sums->erase(sum);
    }
  }
}

TEST(LabExchangeTest, RecordedUpdatesAddUpToTheRecordedVotes) {
  const testing::ScratchFolder folder;
  std::filesystem::create_directory(folder.File("updates"));
  std::vector<LabLink> links(
      kWorkers, {.record_updates = folder.File("updates"), .record_round = kRounds - 1});
  links[0].record_votes = folder.File("votes");
  TrainOver(links);
  std::map<std::pair<int64_t, int>, int> votes, updates;
  AddVotes(folder.File("votes"), &votes);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.File("updates"))) {
    AddVotes(entry.path().string(), &updates);
    ++files;
  }
  EXPECT_EQ(files, kWorkers);
  EXPECT_FALSE(votes.empty());
  EXPECT_EQ(updates, votes);
}

}  // namespace
}  // namespace distro::worker
