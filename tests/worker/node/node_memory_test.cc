// The plan of memory holds for everything that a node does in a round, not for the gradient alone.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "common/base/process/host_memory.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/run/run_config.h"
#include "gtest/gtest.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tests/worker/fsdp/counting_allocator.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/node/node.h"
#include "worker/node/node_devices.h"
#include "worker/plan/memory_plan.h"

namespace distro::worker {
namespace {

using distro::testing::BuildDeltaRound;
using distro::testing::BuildRound;
using distro::testing::Committed;
using testing::RandomTokens;
using testing::TinyModel;

constexpr int kPositions = 32, kKept = 4;

DecoderConfig Config() {
  DecoderConfig config = testing::TinyConfig(8, 4, /*tied=*/true);
  config.hidden_size = 512;
  config.layers = 3;
  config.head_dim = 64;
  config.intermediate_size = 1536;
  config.vocab_size = 8000;
  config.max_positions = 512;
  return config;
}

// The host, whose ranks' memory is counted.
class CountedDevices final : public NodeDevices {
 public:
  explicit CountedDevices(int ranks) : counts_(ranks) {}

  DeviceKind kind() const override { return host_->kind(); }
  int default_ranks() const override { return 1; }
  absl::Status CheckRanks(int ranks) const override { return host_->CheckRanks(ranks); }
  absl::StatusOr<AvailableMemory> Memory(int ranks) const override { return host_->Memory(ranks); }
  int64_t LibraryBytes() const override { return host_->LibraryBytes(); }
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, absl::Duration timeout, std::shared_ptr<CollectiveTime> time) const override {
    return host_->Connect(ranks, timeout, std::move(time));
  }
  absl::Status Use(int rank) const override {
    absl::MutexLock lock(&mu_);
    counts_[rank] = testing::CountedMemoryOfThisThread();
    return absl::OkStatus();
  }
  absl::StatusOr<RankDevice> Open(int rank) const override { return host_->Open(rank); }

  int64_t Peak(int rank) const {
    absl::MutexLock lock(&mu_);
    return counts_[rank]().peak;
  }

 private:
  const std::shared_ptr<const NodeDevices> host_ = MakeCpuDevices();
  mutable absl::Mutex mu_;
  mutable std::vector<std::function<testing::ThreadMemory()>> counts_ ABSL_GUARDED_BY(mu_);
};

struct Case {
  Sharding sharding;
  int ranks;
  bool copy;
  FloatType param_dtype = FloatType::kF32;
  bool deltas = false;
};

v1::RunConfig RunOf(bool deltas) {
  v1::RunConfig config;
  config.set_name("memory");
  config.set_method(deltas ? v1::METHOD_DELTAS : v1::METHOD_SIGNS);
  config.set_rounds(10);
  config.set_sequence_length(kPositions);
  config.set_samples_per_worker(2);
  return *CompleteRunConfig(config);
}

class NodeMemoryTest : public ::testing::TestWithParam<Case> {
 protected:
  NodeMemoryTest() : big_(Config()) {
    EXPECT_TRUE(WriteSnapshot(snapshot_, big_.layout, big_.parameters, {}).ok());
  }

  // Everything of a round.
  void Train(Node* node) {
    ASSERT_TRUE(node->Load(snapshot_, RoundId(0), 0).ok());
    std::vector<std::vector<int32_t>> tokens;
    std::vector<TokenBatch> batches;
    for (int i = 0; i < node->ranks(); ++i)
      tokens.push_back(RandomTokens(kPositions + 1, Config().vocab_size, i));
    for (const auto& each : tokens) batches.push_back({.tokens = each, .sequences = 1});
    const CommittedRound round =
        Committed(big_.layout, GetParam().deltas ? BuildDeltaRound(big_.layout, RoundId(0), 0)
                                                 : BuildRound(big_.layout, RoundId(0), 0));
    const GradientAt at = GetParam().copy ? GradientAt::kCopy : GradientAt::kParameters;
    if (GetParam().copy) {
      ASSERT_TRUE((GetParam().deltas ? node->BeginLocalSteps() : node->MakeLookahead(0.1f)).ok());
    }
    for (const bool first : {true, false})
      ASSERT_TRUE(node->GradientRound(batches, at, first).ok());
    const auto norm = node->FinishGradient(2 * node->ranks());
    ASSERT_TRUE(norm.ok()) << norm.status();
    v1::StepParameters step = round.header->step();
    ASSERT_TRUE(node->TakeStep(step, 0, *norm).ok());
    ASSERT_TRUE(node->Compress(RoundId(0), step).ok());
    ASSERT_TRUE(node->Apply(round).ok());
    ASSERT_TRUE(node->Feedback(round, 0).ok());
    ASSERT_TRUE(node->Losses(batches).ok());
  }

  distro::testing::ScratchFolder folder_;
  const std::string snapshot_ = folder_.File("snapshot");
  TinyModel big_;
};
INSTANTIATE_TEST_SUITE_P(
    Cases, NodeMemoryTest,
    ::testing::Values(Case{Sharding::kNoShard, 1, false}, Case{Sharding::kNoShard, 1, true},
                      Case{Sharding::kNoShard, 1, false, FloatType::kBf16},
                      Case{Sharding::kShardOptimizer, 2, true},
                      Case{Sharding::kShardGradOp, 2, false}, Case{Sharding::kFullShard, 2, true},
                      Case{Sharding::kNoShard, 1, true, FloatType::kF32, true},
                      Case{Sharding::kShardGradOp, 2, true, FloatType::kF32, true},
                      Case{Sharding::kFullShard, 2, true, FloatType::kF32, true}));

TEST_P(NodeMemoryTest, MatchesPlan) {
  testing::CountCpuMemory();
  const Case& how = GetParam();
  NodeOptions options{.ranks = how.ranks};
  options.fsdp.sharding = how.sharding;
  options.fsdp.param_dtype = how.param_dtype;
  const auto devices = std::make_shared<const CountedDevices>(how.ranks);
  const Architecture& architecture = big_.model->architecture();
  const UpdateRuleKind rule = RuleOf(RunOf(how.deltas), &big_.layout, architecture);
  auto node = Node::Create(options, {.layout = &big_.layout,
                                     .model = big_.model.get(),
                                     .rule = &rule,
                                     .copy = how.copy,
                                     .micro_batch_samples = 1,
                                     .sequence_length = kPositions,
                                     .kept_per_block = kKept,
                                     .devices = devices});
  ASSERT_TRUE(node.ok()) << node.status();
  Train(node->get());
  const MemoryPlan plan = PlanMemory({.model = &architecture,
                                      .layout = &big_.layout,
                                      .units = UnitTensors(architecture, big_.layout.manifest()),
                                      .ranks = how.ranks,
                                      .options = options.fsdp,
                                      .sequences = 1,
                                      .positions = kPositions,
                                      .element_arrays = rule.element_arrays,
                                      .block_bytes = rule.PendingBytes(kKept),
                                      .copy = how.copy,
                                      .needs_whole = rule.needs_whole})
                              .value();
  for (int rank = 0; rank < how.ranks; ++rank) {
    const auto measured = static_cast<double>(devices->Peak(rank));
    const auto planned = static_cast<double>(plan.ranks[rank].device_bytes);
    const std::string what = absl::StrFormat(
        "%s ranks %d %s copy %d deltas %d: measured %.1f MB, planned/measured %.3f; %s",
        Name(how.sharding), how.ranks, Name(how.param_dtype), how.copy, how.deltas, measured / 1e6,
        planned / measured, plan.Describe(rank));
    EXPECT_GE(measured, 100e6) << what;
    EXPECT_NEAR(planned / measured, 1, 0.05) << what;
    if (rank == 0) std::cout << what << "\n";
  }
}

// Torch's code and threads are in no rank's plan.
TEST(CpuDevicesTest, ReservesMemoryOfProgram) {
  const absl::StatusOr<AvailableMemory> available = MakeCpuDevices()->Memory(/*ranks=*/2);
  ASSERT_TRUE(available.ok()) << available.status();
  EXPECT_EQ(available->reserve_bytes, HostMemoryBytes() / kHostReserveShare + kProgramBytes);
}

}  // namespace
}  // namespace distro::worker
