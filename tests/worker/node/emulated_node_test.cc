// What has the same bits on emulated GPUs, and what a rank that comes back late may touch.
#include <atomic>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "tests/testing/round_builder.h"
#include "tests/worker/model/observed_attention.h"
#include "tests/worker/node/devices_under_test.h"
#include "tests/worker/node/emulated_devices.h"
#include "tests/worker/node/node_fixture.h"
#include "worker/plan/memory_plan.h"

namespace distro::worker {
namespace testing {

std::shared_ptr<const NodeDevices> DevicesUnderTest() { return MakeEmulatedDevices(); }

}  // namespace testing

namespace {

using distro::testing::BuildDeltaRound;
using distro::testing::BuildRound;
using distro::testing::Committed;
using ::testing::ElementsAre;
using testing::MakeEmulatedDevices;
using testing::NodeCase;
using EmulatedNodeTest = testing::NodeFixture;

// Compress gives the same bits for every cut into runs of block rows, on a GPU too.
TEST_F(EmulatedNodeTest, PayloadsAndStateDoNotShowTheStrategy) {
  const auto one = MakeNode({.devices = MakeEmulatedDevices()});
  const std::vector<std::string> payloads = Train(one.get());
  const std::string state = StateBytes(*one);
  for (const NodeCase& how : testing::AllCases(MakeEmulatedDevices())) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeNode(how);
    EXPECT_TRUE(Train(node.get()) == payloads);
    EXPECT_TRUE(StateBytes(*node) == state);
  }
}

// What is offloaded is the CPU's work: its bits.
TEST_F(EmulatedNodeTest, OffloadedParametersAndMomentumHaveTheCpusBits) {
  const auto one = MakeNode({});
  const std::vector<std::string> payloads = Train(one.get());
  const std::string state = StateBytes(*one);
  for (NodeCase how : testing::AllCases(MakeEmulatedDevices())) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    how.cpu_offload = true;
    const auto node = MakeNode(how);
    EXPECT_TRUE(Train(node.get()) == payloads);
    EXPECT_TRUE(StateBytes(*node) == state);
  }
}

// For all tensors together, not for each.
TEST_F(EmulatedNodeTest, WaitsForDeviceOnce) {
  std::atomic<int> waits = 0;
  const UpdateRuleKind rule =
      RuleOf(testing::DeltasConfig(), &tiny_.layout, tiny_.model->architecture());
  const auto node = MakeNode({.sharding = Sharding::kFullShard,
                              .ranks = 2,
                              .devices = testing::MakeWatchedDevices([&] { ++waits; }, [] {})},
                             rule);
  const CommittedRound round =
      Committed(tiny_.layout, BuildDeltaRound(tiny_.layout, RoundId(0), 0));
  ASSERT_TRUE(node->BeginLocalSteps().ok());
  waits = 0;
  ASSERT_TRUE(node->Compress(RoundId(0), round.header->step()).ok());
  EXPECT_EQ(waits, 2) << "it is finite; then it is compressed";
  ASSERT_EQ(node->Apply(round), absl::OkStatus());
  waits = 0;
  ASSERT_EQ(node->Feedback(round, 0), absl::OkStatus());
  EXPECT_EQ(waits, 1);
}

TEST_F(EmulatedNodeTest, MoreRanksThanDevicesAreRefused) {
  EXPECT_EQ(
      Node::Create(
          {.device = DeviceKind::kCuda, .ranks = 5},
          {.layout = &tiny_.layout, .model = tiny_.model.get(), .devices = MakeEmulatedDevices()})
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

// They are of the device's memory, and the model needs little of it.
TEST_F(EmulatedNodeTest, WorkspacesOfLibrariesAreInThePlan) {
  const auto devices = MakeEmulatedDevices();
  NodeOptions options = OptionsOf({.devices = devices});
  const Node::Dependencies deps = {
      .layout = &tiny_.layout, .model = tiny_.model.get(), .devices = devices};
  options.memory_limit_bytes = devices->LibraryBytes() - 1;
  const absl::Status status = Node::Create(options, deps).status();
  EXPECT_EQ(ReasonOf(status), "does_not_fit") << status;
  EXPECT_EQ(devices->LibraryBytes(), 2 * 32 << 20);
  options.memory_limit_bytes += 1 << 20;
  EXPECT_TRUE(Node::Create(options, deps).ok());
}

// cuDNN would plan for each length of a sample's text, and for an evaluation's last batch.
TEST_F(EmulatedNodeTest, BatchesHaveTheShapesOfAMicroBatch) {
  constexpr int kSamples = 3, kPositions = 8;
  const auto devices = MakeEmulatedDevices();
  const auto node =
      Node::Create(OptionsOf({.ranks = 2, .devices = devices}), {.layout = &tiny_.layout,
                                                                 .model = tiny_.model.get(),
                                                                 .micro_batch_samples = kSamples,
                                                                 .sequence_length = kPositions,
                                                                 .devices = devices});
  ASSERT_TRUE(node.ok()) << node.status();
  ASSERT_TRUE((*node)->Load(Snapshot(), RoundId(0), 0).ok());
  const testing::ObservedAttention observed;
  for (int length = 1; length <= kPositions; ++length)
    ASSERT_TRUE((*node)->NextLogits(testing::RandomTokens(length, 40, length)).ok());
  const std::vector<int32_t> all = testing::RandomTokens(kSamples * (kPositions + 1), 40, 1);
  const std::vector<int32_t> last = testing::RandomTokens(kPositions + 1, 40, 2);
  ASSERT_TRUE((*node)->Losses({{.tokens = all, .sequences = 3}, {.tokens = last}}).ok());
  EXPECT_THAT(observed.shapes(), ElementsAre(ElementsAre(1, 4, kPositions, 8),
                                             ElementsAre(kSamples, 4, kPositions, 8)));
}

// To the byte, without what Torch's allocator of page-locked memory would add.
TEST_F(EmulatedNodeTest, OffloadsPlannedBytes) {
  for (const int ranks : {1, 3}) {
    for (const Sharding sharding : testing::kStrategies) {
      SCOPED_TRACE(absl::StrCat(Name(sharding), " on ", ranks));
      const auto host_bytes = std::make_shared<std::atomic<int64_t>>(0);
      const NodeCase how = {.sharding = sharding,
                            .ranks = ranks,
                            .devices = testing::MakeCountedDevices(host_bytes),
                            .cpu_offload = true};
      const auto node = MakeNode(how);
      const Architecture& model = tiny_.model->architecture();
      const MemoryPlan plan = PlanMemory({.model = &model,
                                          .layout = &tiny_.layout,
                                          .units = UnitTensors(model, tiny_.layout.manifest()),
                                          .ranks = ranks,
                                          .options = OptionsOf(how).fsdp,
                                          .element_arrays = kSignMomentum.element_arrays,
                                          .block_bytes = 1,
                                          .copy = true})
                                  .value();
      int64_t planned = 0;
      for (const RankMemoryPlan& rank : plan.ranks) planned += rank.host_bytes;
      planned -= tiny_.layout.blocks() * (ShardsMomentum(sharding) ? 1 : ranks);
      EXPECT_EQ(*host_bytes, planned) << "without what is pending";
    }
  }
}

// Rank 1 does not return from an operation in time, everything that the operation was given is
// destroyed, the node too, and then the rank goes on. Address sanitizer sees what it should not
// have touched.
class LateRankTest : public testing::NodeFixture {
 protected:
  using Operation = std::function<absl::Status(Node& node)>;

  void ExpectNothingIsTouched(const char* name, Sharding sharding, const Operation& operation) {
    absl::Notification go_on;
    absl::Notification gone;
    std::atomic<bool> stops = false;
    const auto devices = testing::MakeWatchedDevices(
        [&] {
          if (stops) go_on.WaitForNotification();
        },
        [&] { gone.Notify(); });
    NodeOptions options = OptionsOf({.sharding = sharding, .ranks = 2, .devices = devices});
    options.rank_timeout = absl::Seconds(3);
    auto node = Node::Create(
        options,
        {.layout = &tiny_.layout, .model = tiny_.model.get(), .copy = true, .devices = devices});
    ASSERT_TRUE(node.ok()) << name << ": " << node.status();
    ASSERT_TRUE((*node)->Load(Snapshot(), RoundId(0), 0).ok());
    const double norm = Gradient(node->get(), 2, GradientAt::kParameters);
    ASSERT_TRUE((*node)->TakeStep(testing::Step(), 0, norm).ok());
    ASSERT_TRUE((*node)->Compress(RoundId(0), testing::Step()).ok());
    stops = true;
    const absl::Status status = operation(**node);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << name << ": " << status;
    EXPECT_EQ(ReasonOf(status), "rank_failed") << name;
    EXPECT_TRUE((*node)->has_stuck_rank()) << name;
    EXPECT_FALSE((*node)->kept().ok()) << name;  // its device cannot be read
    node->reset();
    go_on.Notify();
    gone.WaitForNotification();
  }
};

// All at once: each waits for the time-out of its node.
TEST_F(LateRankTest, TouchesNothingThatIsGone) {
  const auto one = MakeNode({});
  Train(one.get());
  const std::string state = folder_.File("state");
  StateBytes(*one);  // writes it
  const std::string other = folder_.File("other");
  ASSERT_TRUE(WriteSnapshot(other, tiny_.layout, tiny_.parameters, {}).ok());
  const auto round = [&] {
    return Committed(tiny_.layout, BuildRound(tiny_.layout, RoundId(0), 0));
  };
  std::vector<std::thread> nodes;
  const auto expect = [&](const char* name, Sharding sharding, Operation operation) {
    nodes.emplace_back([=, this] { ExpectNothingIsTouched(name, sharding, operation); });
  };
  expect("load", Sharding::kFullShard, [&](Node& node) { return node.Load(other, RoundId(0), 0); });
  expect("apply", Sharding::kShardOptimizer, [&](Node& node) { return node.Apply(round()); });
  expect("gradient", Sharding::kNoShard, [](Node& node) {
    const std::vector<int32_t> tokens = testing::RandomTokens(2 * testing::kSequence, 40, 1);
    return node.GradientRound({{.tokens = tokens, .sequences = 2}}, GradientAt::kParameters, true)
        .status();
  });
  expect("finish gradient", Sharding::kNoShard,
         [](Node& node) { return node.FinishGradient(1).status(); });
  expect("compress", Sharding::kShardGradOp,
         [](Node& node) { return node.Compress(RoundId(1), testing::Step()).status(); });
  expect("feedback", Sharding::kFullShard, [&](Node& node) { return node.Feedback(round(), 0); });
  expect("restore", Sharding::kFullShard, [&](Node& node) {
    const auto reader = StateReader::Open(state);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return node.Restore(
        std::make_shared<const StateReader::Contents>(*reader->Read(tiny_.layout, kSignMomentum)));
  });
  for (std::thread& node : nodes) node.join();
}

}  // namespace
}  // namespace distro::worker
