// A node of a small model with odd shapes: more ranks than a tensor has block rows, ranks without
// any part of a unit. Shared by the tests of nodes on all devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "common/base/file.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/run/run_config.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/node/node.h"
#include "worker/node/node_devices.h"

namespace distro::worker::testing {

inline constexpr int kSequence = 9;

struct NodeCase {
  Sharding sharding = Sharding::kNoShard;
  int ranks = 1;
  std::shared_ptr<const NodeDevices> devices = nullptr;  // nullptr: the host
  bool cpu_offload = false;
};

inline constexpr Sharding kStrategies[] = {Sharding::kNoShard, Sharding::kShardOptimizer,
                                           Sharding::kShardGradOp, Sharding::kFullShard};

// Every strategy with 1 to 4 ranks.
inline std::vector<NodeCase> AllCases(std::shared_ptr<const NodeDevices> devices = nullptr) {
  std::vector<NodeCase> cases;
  for (const Sharding sharding : kStrategies) {
    for (const int ranks : {1, 2, 3, 4})
      cases.push_back({.sharding = sharding, .ranks = ranks, .devices = devices});
  }
  return cases;
}

inline v1::StepParameters Step() {
  v1::StepParameters step;
  step.set_eta_bits(absl::bit_cast<uint32_t>(0.01f));
  step.set_beta(0.9f);
  step.set_clip_norm(0.5f);
  step.set_kept_per_block(3);
  return step;
}

// A run of deltas for the fixture's model; a clip of 0: none.
inline v1::RunConfig DeltasConfig(double delta_clip = 0, int local_steps = 2,
                                  v1::InnerOptimizer inner = v1::INNER_OPTIMIZER_UNSPECIFIED) {
  v1::RunConfig config;
  config.set_name("deltas");
  config.set_method(v1::METHOD_DELTAS);
  config.set_rounds(10);
  config.set_sequence_length(kSequence);
  config.set_samples_per_worker(2);
  config.set_local_steps(local_steps);
  config.set_inner_optimizer(inner);
  if (delta_clip > 0) config.set_delta_clip(delta_clip);
  return *CompleteRunConfig(config);
}

class NodeFixture : public ::testing::Test {
 protected:
  explicit NodeFixture(const DecoderConfig& config = TinyConfig(4, 2, /*tied=*/true))
      : tiny_(config) {
    EXPECT_TRUE(WriteSnapshot(Snapshot(), tiny_.layout, tiny_.parameters, {}).ok());
  }
  std::string Snapshot() const { return folder_.File("snapshot"); }

  NodeOptions OptionsOf(const NodeCase& how) const {
    NodeOptions options{.ranks = how.ranks};
    options.device = how.devices == nullptr ? DeviceKind::kCpu : how.devices->kind();
    options.fsdp.sharding = how.sharding;
    options.fsdp.cpu_offload = how.cpu_offload;
    return options;
  }
  std::unique_ptr<Node> MakeNode(const NodeCase& how, const UpdateRuleKind& rule = kSignMomentum) {
    auto node = Node::Create(OptionsOf(how), {.layout = &tiny_.layout,
                                              .model = tiny_.model.get(),
                                              .rule = &rule,
                                              .copy = true,
                                              .devices = how.devices});
    EXPECT_TRUE(node.ok()) << node.status();
    EXPECT_TRUE((*node)->Load(Snapshot(), RoundId(0), 0).ok());
    return *std::move(node);
  }

  // Computes the gradient of `count` micro-batches at the node; returns its norm, and sets the
  // losses.
  double Gradient(Node* node, int count, GradientAt at, std::vector<double>* losses = nullptr) {
    std::vector<std::vector<int32_t>> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(RandomTokens(2 * kSequence, 40, i));
    for (int first = 0; first < count; first += node->ranks()) {
      std::vector<TokenBatch> batches;
      for (int i = first; i < std::min(first + node->ranks(), count); ++i)
        batches.push_back({.tokens = tokens[i], .sequences = 2});
      const auto round = node->GradientRound(batches, at, first == 0);
      EXPECT_TRUE(round.ok()) << round.status();
      if (round.ok() && losses != nullptr)
        losses->insert(losses->end(), round->begin(), round->end());
    }
    return *node->FinishGradient(count);
  }
  // Two steps of a worker, the second at the lookahead copy, with nothing included.
  std::vector<std::string> Train(Node* node) {
    std::vector<std::string> bytes;
    for (const GradientAt at : {GradientAt::kParameters, GradientAt::kCopy}) {
      if (at == GradientAt::kCopy) {
        EXPECT_TRUE(node->MakeLookahead(0.01f).ok());
      }
      const double norm = Gradient(node, 5, at);
      EXPECT_GT(norm, 0.5);
      EXPECT_EQ(node->TakeStep(Step(), 0, norm), absl::OkStatus());
      const auto payloads = node->Compress(RoundId(3), Step());
      EXPECT_TRUE(payloads.ok()) << payloads.status();
      for (const SharedBytes& payload : *payloads) bytes.push_back(*payload);
    }
    return bytes;
  }

  std::string StateBytes(const Node& node) {
    const std::string path = folder_.File("state");
    const auto kept = node.kept();
    EXPECT_TRUE(kept.ok()) << kept.status();
    const WorkerState state{.run_id = "r",
                            .worker = "w",
                            .epoch = EpochId(1),
                            .next_round = {},
                            .local_steps = kept->local_steps};
    EXPECT_TRUE(WriteStateFile(path, state, kept->elements, *kept->optimizer).ok());
    return *ReadFile(path);
  }
  absl::Status Restore(Node* node, const std::string& state) {
    const auto reader = StateReader::FromBytes(state);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return node->Restore(
        std::make_shared<const StateReader::Contents>(*reader->Read(tiny_.layout, node->rule())));
  }
  std::string SnapshotOf(const Node& node) {
    const std::string path = folder_.File("again");
    EXPECT_TRUE(WriteSnapshot(path, tiny_.layout, node.parameters()->pieces, {}).ok());
    return *ReadFile(path);
  }

  distro::testing::ScratchFolder folder_;
  TinyModel tiny_;
};

}  // namespace distro::worker::testing
