#include "worker/plan/memory_plan.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "common/model/logit_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/troubleshooting_page.h"
#include "tests/worker/fsdp/counting_allocator.h"
#include "tests/worker/fsdp/node.h"
#include "tests/worker/model/tiny_model.h"
#include "worker/plan/matrix_waves.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Node;
using ::distro::worker::testing::RandomTokens;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Shape {
  const char* name;
  DecoderConfig config;
  int sequences;
  int positions;
};

DecoderConfig Config(int hidden, int layers, int heads, int kv_heads, int inner, int vocabulary,
                     bool tied) {
  return {.hidden_size = hidden,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = 64,
          .intermediate_size = inner,
          .vocab_size = vocabulary,
          .max_positions = 512,
          .rms_norm_eps = 1e-5f,
          .rope = {.theta = 10000},
          .tied_embeddings = tied,
          .initializer_range = 0.02f};
}

// The config as one of another kind, with a window of as many positions in every layer.
DecoderConfig WithKind(DecoderConfig config, absl::string_view model_type, int window) {
  for (const DecoderKind& kind : kDecoderKinds) {
    if (kind.model_type == model_type) config.kind = &kind;
  }
  config.window = window;
  for (int layer = 0; layer < config.layers; ++layer) config.windowed[layer] = window > 0;
  return config;
}

MemoryRequest RequestOf(const Node& node, const Shape& shape, int ranks,
                        const FsdpOptions& options) {
  MemoryRequest request;
  request.model = &node.model().architecture();
  request.layout = &node.layout();
  request.units = UnitTensors(node.model().architecture(), node.layout().manifest());
  request.ranks = ranks;
  request.options = options;
  request.sequences = shape.sequences;
  request.positions = shape.positions;
  return request;
}

// Here the host's memory is the device's: what is offloaded is counted too.
void ExpectPlanHolds(const Shape& shape, int ranks, const FsdpOptions& options) {
  testing::CountCpuMemory();
  Node node(shape.config, ranks, options);
  const MemoryPlan plan = PlanMemory(RequestOf(node, shape, ranks, options)).value();
  std::vector<std::vector<int32_t>> batches;
  for (int i = 0; i < ranks; ++i) {
    batches.push_back(
        RandomTokens(shape.sequences * (shape.positions + 1), shape.config.vocab_size, i));
  }
  node.Gradient(batches, shape.sequences);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto measured = static_cast<double>(node.counted_peaks()[rank]);
    const auto planned =
        static_cast<double>(plan.ranks[rank].device_bytes + plan.ranks[rank].host_bytes);
    const std::string what = absl::StrFormat(
        "%s ranks %d %s %s checkpoint %d: measured %.1f MB, planned/measured %.3f; %s", shape.name,
        ranks, Name(options.sharding), Name(options.param_dtype), options.checkpoint_every,
        measured / 1e6, planned / measured, plan.Describe(rank));
    EXPECT_GE(measured, 100e6) << what;
    EXPECT_NEAR(planned / measured, 1, 0.05) << what;
    if (rank == 0) std::cout << what << "\n";
  }
}

// Each has another largest part: logits, activations of blocks, parameters.
const Shape kLogits = {"logits", Config(128, 2, 2, 2, 256, 16000, false), 1, 500};
// Logits of all tokens would be 307 MB; 4194 rows at a time are 268 MB.
const Shape kChunks = {"chunks", Config(64, 1, 1, 1, 64, 16000, false), 12, 400};
const Shape kBlocks = {"blocks", Config(256, 8, 4, 2, 512, 260, false), 4, 256};
const Shape kLarge = {"large", Config(256, 4, 4, 4, 1024, 260, false), 4, 512};
const Shape kParameters = {"parameters", Config(512, 3, 8, 4, 1536, 8000, true), 1, 32};
// Norms of the heads, and attention with a mask, of which bf16 has repeated heads.
const Shape kNorms = {"norms", WithKind(kBlocks.config, "qwen3", 0), 4, 256};
const Shape kWindow = {"window", WithKind(kBlocks.config, "mistral", 100), 4, 256};
const Shape kEmbedding = {"embedding", Config(512, 1, 8, 4, 512, 16000, false), 1, 8};

TEST(MemoryPlanTest, HoldsWhereLogitsNeedMost) {
  ExpectPlanHolds(kLogits, 1, {});
  ExpectPlanHolds(kLogits, 1, {.param_dtype = FloatType::kBf16});
}

TEST(MemoryPlanTest, HoldsWhereLogitsAreMadeInChunks) {
  ASSERT_GT(kChunks.sequences * kChunks.positions, LogitRows(kChunks.config.vocab_size));
  ExpectPlanHolds(kChunks, 1, {});
  ExpectPlanHolds(kChunks, 1, {.param_dtype = FloatType::kBf16});
}

TEST(MemoryPlanTest, HoldsWhereActivationsOfBlocksNeedMost) {
  ExpectPlanHolds(kBlocks, 1, {});
  ExpectPlanHolds(kBlocks, 2, {.sharding = Sharding::kFullShard, .param_dtype = FloatType::kBf16});
}

TEST(MemoryPlanTest, HoldsWithNormsOfHeadsAndWithWindows) {
  for (const Shape& shape : {kNorms, kWindow}) {
    ExpectPlanHolds(shape, 1, {});
    ExpectPlanHolds(shape, 1, {.param_dtype = FloatType::kBf16});
  }
}

TEST(MemoryPlanTest, HoldsWithCheckpointing) {
  for (const int every : {1, 2}) ExpectPlanHolds(kLarge, 1, {.checkpoint_every = every});
}

TEST(MemoryPlanTest, HoldsWhereParametersNeedMostInEveryStrategy) {
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer,
                                  Sharding::kShardGradOp, Sharding::kFullShard}) {
    ExpectPlanHolds(kParameters, 2, {.sharding = sharding});
  }
  ExpectPlanHolds(kParameters, 2,
                  {.sharding = Sharding::kShardGradOp, .reduce_dtype = FloatType::kBf16});
  ExpectPlanHolds(kParameters, 2,
                  {.param_dtype = FloatType::kBf16,
                   .reduce_dtype = FloatType::kBf16,
                   .reduce_every_micro_batch = false});
}

// Their f32 elements are on the device too while they are converted.
TEST(MemoryPlanTest, HoldsWhereOffloadedParametersNeedMost) {
  for (const int ranks : {1, 2}) {
    ExpectPlanHolds(
        kEmbedding, ranks,
        {.sharding = Sharding::kFullShard, .param_dtype = FloatType::kBf16, .cpu_offload = true});
  }
}

class MemoryCheckTest : public ::testing::Test {
 protected:
  MemoryCheckTest()
      : layout_(Layout::Create(Manifest::Create(model_->Tensors()).value(), 4).value()) {
    request_.model = model_.get();
    request_.layout = &layout_;
    request_.units = UnitTensors(*model_, layout_.manifest());
    request_.ranks = 4;
    request_.sequences = shape_.sequences;
    request_.positions = shape_.positions;
    request_.element_arrays = 1;
    request_.block_bytes = 6 * 4;
  }

  // Of the rank that needs most.
  int64_t Peak(const FsdpOptions& options) const {
    MemoryRequest request = request_;
    request.options = options;
    int64_t most = 0;
    const MemoryPlan plan = PlanMemory(request).value();
    for (const RankMemoryPlan& rank : plan.ranks) {
      most = std::max(most, rank.device_bytes);
    }
    return most;
  }

  const Shape shape_ = kBlocks;
  const std::shared_ptr<const Architecture> model_ = testing::MakeLlama(shape_.config);
  const Layout layout_;
  MemoryRequest request_;
};

TEST_F(MemoryCheckTest, AcceptsWhatFits) {
  const int64_t peak = Peak({});
  EXPECT_TRUE(CheckMemory(request_, {.bytes = 4 * peak, .shared = true}).ok());
  EXPECT_TRUE(CheckMemory(request_, {.bytes = peak, .shared = false}).ok());
  EXPECT_FALSE(CheckMemory(request_, {.bytes = 4 * peak - 1, .shared = true}).ok());
  EXPECT_FALSE(CheckMemory(request_, {.bytes = peak, .reserve_bytes = 1, .shared = false}).ok());
}

TEST_F(MemoryCheckTest, NamesTheStrategyThatWouldFit) {
  const int64_t peak = Peak({.sharding = Sharding::kShardGradOp});
  const absl::Status status = CheckMemory(request_, {.bytes = peak + 1'000'000, .shared = false});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("rank=0"), HasSubstr("activations="),
                    HasSubstr("--sharding shard_grad_op --activation_checkpointing 0 would fit")));
}

TEST_F(MemoryCheckTest, NamesCheckpointingWhenShardingIsNotEnough) {
  const int64_t peak = Peak({.sharding = Sharding::kFullShard, .checkpoint_every = 1});
  EXPECT_THAT(CheckMemory(request_, {.bytes = peak + 1'000'000, .shared = false}).message(),
              HasSubstr("--sharding full_shard --activation_checkpointing 1 would fit"));
}

// Parameters that are on the host need no sharding to be off the device.
TEST_F(MemoryCheckTest, NamesOffloadOnAGpuOnly) {
  const int64_t peak =
      Peak({.sharding = Sharding::kShardGradOp, .checkpoint_every = 1, .cpu_offload = true});
  const AvailableMemory tight{.bytes = peak, .shared = false, .cuda = true};
  EXPECT_THAT(
      CheckMemory(request_, tight).message(),
      HasSubstr("--sharding shard_grad_op --activation_checkpointing 1 --cpu_offload would fit"));
  AvailableMemory cpu = tight;
  cpu.cuda = false;
  EXPECT_THAT(CheckMemory(request_, cpu).message(),
              AllOf(HasSubstr("no strategy would fit"), Not(HasSubstr("cpu_offload"))));
}

// Torch's fused norm keeps nothing of a block's two norms but their statistics.
TEST_F(MemoryCheckTest, FusedNormsKeepNoIntermediateResults) {
  const int64_t elements = int64_t{shape_.sequences} * shape_.positions * shape_.config.hidden_size;
  const auto saved = [&](int64_t element_bytes, bool gpu) {
    return model_->Memory(shape_.sequences, shape_.positions, element_bytes, gpu).units[1].saved;
  };
  EXPECT_EQ(saved(4, false) - saved(4, true), 2 * 4 * elements);
  EXPECT_EQ(saved(2, false) - saved(2, true), 2 * (2 + 4) * elements);
  const int64_t peak = Peak({});
  request_.cuda = true;
  EXPECT_LT(Peak({}), peak);
}

// Their gradients are then made in the forward pass, as those of several chunks.
TEST_F(MemoryCheckTest, OnGpusLogitsOfAnOddNumberOfWordsAreNotTorchs) {
  const auto saved = [&](int vocabulary, bool gpu) {
    Shape shape = shape_;
    shape.config.vocab_size = vocabulary;
    return testing::MakeLlama(shape.config)
        ->Memory(shape.sequences, shape.positions, 2, gpu)
        .units.back()
        .saved;
  };
  const int64_t tokens = int64_t{shape_.sequences} * shape_.positions;
  const int64_t hidden = 2 * shape_.config.hidden_size;
  EXPECT_EQ(saved(320, true), tokens * (4 + hidden + 4 * 320));
  EXPECT_EQ(saved(321, true), tokens * (4 + hidden) + 321 * hidden);
  EXPECT_GE(saved(321, false), tokens * 4 * 321);
}

// The plan would fit, had another process not filled the GPU.
TEST_F(MemoryCheckTest, NamesWhatOthersHoldOfAGpu) {
  const int64_t peak = Peak({.sharding = Sharding::kNoShard});
  AvailableMemory filled{
      .bytes = 1'000'000, .shared = false, .cuda = true, .held_bytes = peak, .host_bytes = 0};
  const absl::Status status = CheckMemory(request_, filled);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("of which others hold"));
  EXPECT_TRUE(distro::testing::TroubleshootingPageHas(message.substr(0, message.find(": rank=")),
                                                      "HOST:PORT", "/nowhere/"))
      << message;
  filled.held_bytes = 0;
  EXPECT_THAT(CheckMemory(request_, filled).message(), Not(HasSubstr("others hold")));
}

// Parameters, lookahead copy, momentum with what is pending, and the gradient that is compressed
// there.
TEST_F(MemoryCheckTest, RefusesOffloadBeyondHost) {
  request_.options.cpu_offload = true;
  request_.copy = true;
  const ShardPlan whole = ShardPlan::Create(layout_, request_.units, 1).value();
  const int64_t host = 4 * (4 * 4 * whole.shard(0).elements() + 6 * 4 * layout_.blocks());
  AvailableMemory available{
      .bytes = 1'000'000'000, .shared = false, .cuda = true, .host_bytes = host};
  EXPECT_TRUE(CheckMemory(request_, available).ok());
  available.host_bytes = host - 1;
  EXPECT_THAT(CheckMemory(request_, available).message(),
              AllOf(HasSubstr("of the host for what --cpu_offload puts there"),
                    HasSubstr("--sharding shard_optimizer")));
}

// One token and a large vocabulary: a rank needs most while the head's gradient is reduced.
TEST(MemoryPlanTest, OnGpusAReductionHoldsTheRanksRangeOfTheResultToo) {
  const auto model = testing::MakeLlama(Config(64, 1, 1, 1, 64, 16384, false));
  const Layout layout = Layout::Create(Manifest::Create(model->Tensors()).value(), 4).value();
  MemoryRequest request;
  request.model = model.get();
  request.layout = &layout;
  request.units = UnitTensors(*model, layout.manifest());
  request.ranks = 4;
  request.options.sharding = Sharding::kNoShard;
  const auto rank = [&](bool cuda) {
    request.cuda = cuda;
    return PlanMemory(request).value().ranks[0];
  };
  const auto workspace = [](const RankMemoryPlan& plan) {
    return plan.bytes[static_cast<size_t>(MemoryCategory::kWorkspace)];
  };
  const ShardPlan shards = ShardPlan::Create(layout, request.units, request.ranks).value();
  const std::vector<int64_t>& cuts = shards.units().back().cuts;
  int64_t range = 0;
  for (int i = 0; i < request.ranks; ++i) range = std::max(range, cuts[i + 1] - cuts[i]);
  EXPECT_EQ(rank(true).phase, "reduction of head");
  EXPECT_EQ(rank(false).phase, "reduction of head");
  EXPECT_EQ(workspace(rank(true)) - workspace(rank(false)), 4 * range);
}

// The step of the rule comes after the gradient: a rank plans for the larger of the two. Few
// activations and one layer of long matrices: alone a rank needs more for the step.
TEST(MemoryPlanTest, IncludesStepOfWholeMatrices) {
  const auto model = testing::MakeLlama(Config(64, 1, 1, 1, 4096, 16, false));
  const Layout layout = Layout::Create(Manifest::Create(model->Tensors()).value(), 4).value();
  const auto planned = [](const RankMemoryPlan& rank, MemoryCategory category) {
    return rank.bytes[static_cast<size_t>(category)];
  };
  for (const int ranks : {1, 3}) {
    for (const Sharding sharding : {Sharding::kNoShard, Sharding::kFullShard}) {
      MemoryRequest request;
      request.model = model.get();
      request.layout = &layout;
      request.units = UnitTensors(*model, layout.manifest());
      request.ranks = ranks;
      request.options.sharding = sharding;
      request.copy = true;
      const MemoryPlan gradient = PlanMemory(request).value();
      request.needs_whole = TensorsInside(layout, request.units);
      const MemoryPlan both = PlanMemory(request).value();
      const ShardPlan shards = ShardPlan::Create(layout, request.units, ranks).value();
      for (int rank = 0; rank < ranks; ++rank) {
        const RankMemoryPlan &before = gradient.ranks[rank], &after = both.ranks[rank];
        const int64_t copy = planned(before, MemoryCategory::kParameters);
        const int64_t of_gradient = planned(before, MemoryCategory::kGathered) +
                                    planned(before, MemoryCategory::kActivations) +
                                    planned(before, MemoryCategory::kWorkspace) - copy;
        const int64_t of_step =
            WaveScratchBytes(layout, MatrixWaves(layout, request.needs_whole, ranks),
                             ShardsMomentum(sharding) ? &shards : nullptr, rank);
        EXPECT_EQ(after.device_bytes - before.device_bytes,
                  std::max<int64_t>(of_step - of_gradient, 0));
        EXPECT_EQ(after.phase == "inner step", of_step > of_gradient);
        if (ranks > 1) continue;
        EXPECT_EQ(after.phase, "inner step");
        EXPECT_EQ(planned(after, MemoryCategory::kWorkspace), of_step + copy);
        EXPECT_EQ(planned(after, MemoryCategory::kActivations), 0);
      }
    }
  }
}

TEST_F(MemoryCheckTest, MomentumPendingLookaheadAndLibrariesAreInThePlan) {
  const auto planned = [&](MemoryCategory category) {
    return PlanMemory(request_).value().ranks[0].bytes[static_cast<size_t>(category)];
  };
  const ShardPlan whole = ShardPlan::Create(layout_, request_.units, 1).value();
  EXPECT_EQ(planned(MemoryCategory::kMomentum),
            4 * whole.shard(0).elements() + 6 * 4 * layout_.blocks());
  const int64_t without = planned(MemoryCategory::kWorkspace);
  request_.copy = true;
  EXPECT_EQ(planned(MemoryCategory::kWorkspace) - without, 4 * whole.shard(0).elements());
  request_.library_bytes = 1000;
  EXPECT_EQ(planned(MemoryCategory::kWorkspace) - without, 4 * whole.shard(0).elements() + 1000);
}

}  // namespace
}  // namespace distro::worker
