// A node of a small model with odd shapes: more ranks than a tensor has block rows, ranks without any part of a unit.
#include "worker/node/node.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/checkpoint/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "tests/worker/model/tiny_model.h"

namespace distro::worker {
namespace {

using testing::RandomTokens;
using testing::TinyConfig;
using testing::TinyModel;

constexpr int kSequence = 9;

struct Case {
  Sharding sharding;
  int ranks;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer,
                                  Sharding::kShardGradOp, Sharding::kFullShard}) {
    for (const int ranks : {1, 2, 3, 4}) cases.push_back({sharding, ranks});
  }
  return cases;
}

v1::StepParameters Step() {
  v1::StepParameters step;
  step.set_eta_bits(absl::bit_cast<uint32_t>(0.01f));
  step.set_beta(0.9f);
  step.set_clip_norm(0.5f);
  step.set_kept_per_block(3);
  return step;
}

class NodeTest : public ::testing::Test {
 protected:
  NodeTest() : tiny_(TinyConfig(4, 2, /*tied=*/true)) {
    EXPECT_TRUE(WriteSnapshot(Snapshot(), tiny_.layout, tiny_.parameters, {}).ok());
  }
  std::string Snapshot() const { return folder_.File("snapshot"); }

  std::unique_ptr<Node> MakeNode(const Case& how) {
    NodeOptions options{.ranks = how.ranks};
    options.fsdp.sharding = how.sharding;
    auto node = Node::Create(
        options, {.layout = &tiny_.layout, .model = tiny_.model.get(), .lookahead = true});
    EXPECT_TRUE(node.ok()) << node.status();
    EXPECT_TRUE((*node)->Load(Snapshot(), RoundId(0), 0).ok());
    return *std::move(node);
  }
  // The gradient of `count` micro-batches; its norm.
  double Gradient(Node* node, int count, GradientAt at) {
    std::vector<std::vector<int32_t>> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(RandomTokens(2 * kSequence, 40, i));
    for (int first = 0; first < count; first += node->ranks()) {
      std::vector<TokenBatch> batches;
      for (int i = first; i < std::min(first + node->ranks(), count); ++i)
        batches.push_back({.tokens = tokens[i], .sequences = 2});
      EXPECT_TRUE(node->GradientRound(batches, at, first == 0).ok());
    }
    return *node->FinishGradient(count);
  }
  // Two steps of a worker, the second at the lookahead copy, with nothing included.
  std::vector<std::string> Train(Node* node) {
    std::vector<std::string> bytes;
    for (const GradientAt at : {GradientAt::kParameters, GradientAt::kLookahead}) {
      if (at == GradientAt::kLookahead) {
        EXPECT_TRUE(node->MakeLookahead(0.01f).ok());
      }
      const double norm = Gradient(node, 5, at);
      EXPECT_GT(norm, 0.5);
      const auto payloads = node->Compress(RoundId(3), Step(), norm);
      EXPECT_TRUE(payloads.ok()) << payloads.status();
      for (const SharedBytes& payload : *payloads) bytes.push_back(*payload);
    }
    return bytes;
  }
  std::string StateBytes(const Node& node) {
    const std::string path = folder_.File("state");
    const WorkerState state{.run_id = "r", .worker = "w", .epoch = EpochId(1), .next_round = {}};
    const auto kept = node.kept();
    EXPECT_TRUE(kept.ok()) << kept.status();
    EXPECT_TRUE(WriteStateFile(path, state, kept->momentum, *kept->optimizer).ok());
    return *ReadFile(path);
  }

  distro::testing::ScratchFolder folder_;
  TinyModel tiny_;
};

TEST_F(NodeTest, PayloadsAndStateDoNotShowTheStrategy) {
  const auto one = MakeNode({Sharding::kNoShard, 1});
  const std::vector<std::string> payloads = Train(one.get());
  const std::string state = StateBytes(*one);
  for (const Case& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeNode(how);
    EXPECT_EQ(node->StateHash(), one->StateHash());
    EXPECT_TRUE(Train(node.get()) == payloads);
    EXPECT_TRUE(StateBytes(*node) == state);
  }
}

// Every strategy and number of ranks reads what any of them wrote: all write the same bytes (above).
TEST_F(NodeTest, AStateIsTakenOverToTheBit) {
  const auto one = MakeNode({Sharding::kNoShard, 1});
  Train(one.get());
  const std::string state = StateBytes(*one);
  for (const Case& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeNode(how);
    const auto reader = StateReader::FromBytes(state);
    ASSERT_TRUE(reader.ok()) << reader.status();
    ASSERT_TRUE(node->Restore(*reader->Read(tiny_.layout)).ok());
    EXPECT_TRUE(StateBytes(*node) == state);
    const auto payloads = node->EncodePending(), expected = one->EncodePending();
    for (size_t i = 0; i < expected->size(); ++i) EXPECT_EQ(*(*payloads)[i], *(*expected)[i]);
  }
}

TEST_F(NodeTest, LossesAreThoseOfOneRank) {
  const std::vector<int32_t> a = RandomTokens(2 * kSequence, 40, 1), b = RandomTokens(9, 40, 2);
  const std::vector<TokenBatch> batches = {{.tokens = a, .sequences = 2},
                                           {.tokens = b, .sequences = 1}};
  const auto one = MakeNode({Sharding::kNoShard, 1});
  for (const Case& how : AllCases()) {
    if (how.ranks < 2) continue;
    const auto node = MakeNode(how);
    const auto losses = node->Losses(batches);
    ASSERT_TRUE(losses.ok()) << losses.status();
    EXPECT_EQ((*losses)[0], (*one->Losses({batches[0]}))[0]);
    EXPECT_EQ((*losses)[1], (*one->Losses({batches[1]}))[0]);
  }
}

TEST_F(NodeTest, ParametersAreWhereTheyAre) {
  for (const Case& how : AllCases()) {
    const auto node = MakeNode(how);
    const std::string path = folder_.File("again");
    ASSERT_TRUE(WriteSnapshot(path, tiny_.layout, node->parameters(), {}).ok());
    EXPECT_TRUE(*ReadFile(path) == *ReadFile(Snapshot()));
  }
}

// A token that the vocabulary does not have: the rank that gets it fails, nobody waits for it.
TEST_F(NodeTest, ARankThatFailsEndsTheNode) {
  std::vector<int32_t> good = RandomTokens(2 * kSequence, 40, 1), bad = good;
  bad[3] = 4000;
  for (const Case& how : AllCases()) {
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

TEST_F(NodeTest, ASnapshotOfAnotherModelIsRefused) {
  const auto node = MakeNode({Sharding::kFullShard, 2});
  const uint64_t hash = node->StateHash();
  TinyModel other(TinyConfig(4, 2, /*tied=*/false));
  ASSERT_TRUE(WriteSnapshot(Snapshot(), other.layout, other.parameters, {}).ok());
  EXPECT_EQ(node->Load(Snapshot(), RoundId(1), 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node->StateHash(), hash);
  EXPECT_TRUE(node->MakeLookahead(0.1f).ok());
}

TEST_F(NodeTest, WhatCannotFitIsRefusedBeforeItIsAllocated) {
  const Node::Parts parts = {.layout = &tiny_.layout, .model = tiny_.model.get()};
  NodeOptions options{.ranks = 2, .memory_limit_bytes = 10000};
  const absl::Status status = Node::Create(options, parts).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "does_not_fit");
  options.memory_limit_bytes = 100000000;
  EXPECT_TRUE(Node::Create(options, parts).ok());
}

TEST_F(NodeTest, OptionsThatContradictAreRefused) {
  NodeOptions options{.ranks = 2};
  options.fsdp.sharding = Sharding::kFullShard;
  options.fsdp.reduce_every_micro_batch = false;
  const Node::Parts parts = {.layout = &tiny_.layout, .model = tiny_.model.get()};
  EXPECT_EQ(Node::Create(options, parts).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::worker
