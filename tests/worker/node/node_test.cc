#include "worker/node/node.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/node/node_fixture.h"

namespace distro::worker {
namespace {

using testing::AllCases;
using testing::kSequence;
using testing::NodeCase;
using testing::RandomTokens;
using testing::TinyConfig;
using testing::TinyModel;
using NodeTest = testing::NodeFixture;

TEST_F(NodeTest, PayloadsAndStateDoNotShowTheStrategy) {
  const auto one = MakeNode({Sharding::kNoShard, 1});
  const std::vector<std::string> payloads = Train(one.get());
  const std::string state = StateBytes(*one);
  for (const NodeCase& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeNode(how);
    EXPECT_EQ(node->StateHash(), one->StateHash());
    EXPECT_TRUE(Train(node.get()) == payloads);
    EXPECT_TRUE(StateBytes(*node) == state);
  }
}

// Every strategy and number of ranks reads what any of them wrote: all write the same bytes
// (above).
TEST_F(NodeTest, RestoresState) {
  const auto one = MakeNode({Sharding::kNoShard, 1});
  Train(one.get());
  const std::string state = StateBytes(*one);
  for (const NodeCase& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeNode(how);
    ASSERT_TRUE(Restore(node.get(), state).ok());
    EXPECT_TRUE(StateBytes(*node) == state);
    const auto payloads = node->EncodePending(), expected = one->EncodePending();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(*payloads[i], *expected[i]);
  }
}

TEST_F(NodeTest, LossesAreThoseOfOneRank) {
  const std::vector<int32_t> a = RandomTokens(2 * kSequence, 40, 1), b = RandomTokens(9, 40, 2);
  const std::vector<TokenBatch> batches = {{.tokens = a, .sequences = 2},
                                           {.tokens = b, .sequences = 1}};
  const auto one = MakeNode({Sharding::kNoShard, 1});
  for (const NodeCase& how : AllCases()) {
    if (how.ranks < 2) continue;
    const auto node = MakeNode(how);
    const auto losses = node->Losses(batches);
    ASSERT_TRUE(losses.ok()) << losses.status();
    EXPECT_EQ((*losses)[0], (*one->Losses({batches[0]}))[0]);
    EXPECT_EQ((*losses)[1], (*one->Losses({batches[1]}))[0]);
  }
}

TEST_F(NodeTest, LogitsOfTheNextTokenAreTheModels) {
  const std::vector<int32_t> tokens = RandomTokens(kSequence, 40, 1);
  const auto expected = tiny_.model->NextLogits(tokens, tiny_.parameters);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const NodeCase& how : AllCases()) {
    const auto logits = MakeNode(how)->NextLogits(tokens);
    ASSERT_TRUE(logits.ok()) << logits.status();
    EXPECT_EQ(*logits, *expected);
  }
}

TEST_F(NodeTest, ParametersAreWhereTheyAre) {
  for (const NodeCase& how : AllCases()) {
    const auto node = MakeNode(how);
    EXPECT_TRUE(SnapshotOf(*node) == *ReadFile(Snapshot()));
  }
}

// A token that the vocabulary does not have: the rank that gets it fails, nobody waits for it.
TEST_F(NodeTest, EndsWithFailedRank) {
  std::vector<int32_t> good = RandomTokens(2 * kSequence, 40, 1), bad = good;
  bad[3] = 4000;
  for (const NodeCase& how : AllCases()) {
    if (how.ranks < 2) continue;
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeNode(how);
    std::vector<TokenBatch> batches(how.ranks, {.tokens = good, .sequences = 2});
    batches[1].tokens = bad;
    const absl::Status status =
        node->GradientRound(batches, GradientAt::kParameters, true).status();
    EXPECT_EQ(ReasonOf(status), "rank_failed") << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("rank 1: gradient"));
    EXPECT_EQ(node->FinishGradient(1).status(), status);
    // The momentum was not touched.
    EXPECT_TRUE(node->kept().ok());
  }
}

TEST_F(NodeTest, RefusesSnapshotOfOtherModel) {
  const auto node = MakeNode({Sharding::kFullShard, 2});
  const uint64_t hash = node->StateHash();
  TinyModel other(TinyConfig(4, 2, /*tied=*/false));
  ASSERT_TRUE(WriteSnapshot(Snapshot(), other.layout, other.parameters, {}).ok());
  EXPECT_EQ(node->Load(Snapshot(), RoundId(1), 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node->StateHash(), hash);
  EXPECT_TRUE(node->MakeLookahead(0.1f).ok());
}

TEST_F(NodeTest, RefusesWhatCannotFit) {
  const Node::Dependencies deps = {.layout = &tiny_.layout, .model = tiny_.model.get()};
  NodeOptions options{.ranks = 2, .memory_limit_bytes = 10000};
  const absl::Status status = Node::Create(options, deps).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "does_not_fit");
  options.memory_limit_bytes = 100000000;
  EXPECT_TRUE(Node::Create(options, deps).ok());
}

// Reported before the worker joins; with GPUs there is nothing to report.
TEST_F(NodeTest, DevicesThatAreNotThereAreRefused) {
  EXPECT_TRUE(Node::CheckDevices({.ranks = 4}).ok());
  const absl::Status status = Node::CheckDevices({.device = DeviceKind::kCuda}).status();
  if (status.ok()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("--device: cuda"));
}

TEST_F(NodeTest, RanksSpendTimeInCollectives) {
  const auto node = MakeNode({Sharding::kFullShard, 2});
  Gradient(node.get(), 2, GradientAt::kParameters);
  const TimeByCollective spent = node->collective_time();
  for (const CollectiveOp op :
       {CollectiveOp::kAllGather, CollectiveOp::kReduceScatter, CollectiveOp::kBarrier})
    EXPECT_GT(spent[static_cast<size_t>(op)], absl::ZeroDuration());
}

TEST_F(NodeTest, MeasuresPeak) {
  EXPECT_GT(*MakeNode({Sharding::kFullShard, 2})->PeakFlops(), 1e6);
}

TEST_F(NodeTest, OptionsThatContradictAreRefused) {
  NodeOptions options{.ranks = 2};
  options.fsdp.sharding = Sharding::kFullShard;
  options.fsdp.reduce_every_micro_batch = false;
  const Node::Dependencies deps = {.layout = &tiny_.layout, .model = tiny_.model.get()};
  EXPECT_EQ(Node::Create(options, deps).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::worker
