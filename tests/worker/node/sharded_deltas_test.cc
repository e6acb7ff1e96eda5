// Nodes of deltas whose ranks share the model: payloads, saved state and parameters are independent
// of the sharding. The model's matrices are cut inside, and their last block rows are short.
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/method/deltas/payload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/plain_deltas.h"
#include "tests/testing/round_builder.h"
#include "tests/worker/node/emulated_devices.h"
#include "tests/worker/node/node_fixture.h"

namespace distro::worker {
namespace {

using distro::testing::BuildDeltaRound;
using distro::testing::BuiltRound;
using distro::testing::Committed;
using distro::testing::DecodeDeltaUpdate;
using testing::AllCases;
using ::testing::IsEmpty;
using testing::NodeCase;

constexpr int kKept = 5;
constexpr int kMicroBatches = 3;
constexpr uint64_t kRounds = 4;

struct ModelCase {
  int local_steps;
  bool tied;
  v1::InnerOptimizer inner;
  double delta_clip = 0;  // 0: none
  const DecoderKind* kind = &kLlama;
};

constexpr double kDeltaClip = 0.125;

// Biases and norms of heads, which no optimizer takes for matrices.
constexpr DecoderKind kMoreVectors = {
    .model_type = "llama", .class_name = "", .qkv_bias = true, .qk_norm = true};

DecoderConfig OddConfig(const ModelCase& model) {
  return {.hidden_size = 72,
          .layers = 2,
          .heads = 3,
          .kv_heads = 1,
          .head_dim = 24,
          .intermediate_size = 200,
          .vocab_size = 150,
          .max_positions = 16,
          .rms_norm_eps = 1e-5f,
          .rope = {.theta = 10000},
          .tied_embeddings = model.tied,
          .initializer_range = 0.2f,
          .kind = model.kind};
}

v1::RunConfig ConfigOf(const ModelCase& model) {
  return testing::DeltasConfig(model.delta_clip, model.local_steps, model.inner);
}

class ShardedDeltasTest : public testing::NodeFixture,
                          public ::testing::WithParamInterface<ModelCase> {
 protected:
  ShardedDeltasTest() : NodeFixture(OddConfig(GetParam())) {}

  std::unique_ptr<Node> MakeDeltas(const NodeCase& how = {}) { return MakeNode(how, rule_); }
  v1::StepParameters DeltaStep() const {
    v1::StepParameters step;
    step.set_clip_norm(1);
    step.set_kept_per_block(kKept);
    v1::DeltaParameters& deltas = *step.mutable_deltas();
    for (int h = 0; h < GetParam().local_steps; ++h)
      deltas.add_inner_rate_bits(std::bit_cast<uint32_t>(0.02f + 0.01f * static_cast<float>(h)));
    deltas.set_outer_rate_bits(std::bit_cast<uint32_t>(0.75f));
    deltas.set_error_decay(0.5f);
    deltas.set_caps(std::string(tiny_.layout.tensors().size(), '\xff'));
    deltas.set_as_dct(rule_.as_dct);
    return step;
  }
  void TakeSteps(Node* node) {
    ASSERT_TRUE(node->BeginLocalSteps().ok());
    for (int h = 0; h < GetParam().local_steps; ++h) {
      const double norm = Gradient(node, kMicroBatches, GradientAt::kCopy);
      ASSERT_GT(norm, 1) << "it is clipped";
      ASSERT_EQ(node->TakeStep(DeltaStep(), h, norm), absl::OkStatus());
    }
  }
  // A round up to its update, whose payloads it returns.
  std::vector<std::string> TakeRound(Node* node, RoundId round) {
    TakeSteps(node);
    return BytesOf(node->Compress(round, DeltaStep()));
  }
  static std::vector<std::string> BytesOf(
      const absl::StatusOr<std::vector<SharedBytes>>& payloads) {
    EXPECT_TRUE(payloads.ok()) << payloads.status();
    std::vector<std::string> bytes;
    for (const SharedBytes& payload : *payloads) bytes.push_back(*payload);
    return bytes;
  }

  // What the payload says, without its every third entry.
  std::string ResultOfPayload(RoundId round, SegmentId segment, const std::string& payload) const {
    const DeltaUpdate update =
        *DecodeDeltaUpdate(payload, ExpectPayload(tiny_.layout, round, segment, kKept));
    const DeltaResult all = ResultOf(update);
    DeltaResult some;
    for (int64_t block = 0; block < all.blocks(); ++block) {
      for (uint32_t i = all.offsets[block]; i < all.offsets[block + 1]; ++i) {
        if (i % 3 == 2) continue;
        some.positions.push_back(all.positions[i]);
        some.signs.push_back(all.signs[i]);
        some.levels.push_back(0);
      }
      const bool empty = some.positions.size() == some.offsets.back();
      some.offsets.push_back(static_cast<uint32_t>(some.positions.size()));
      some.codes.push_back(empty ? 0 : all.codes[block]);
    }
    return EncodeDeltaResult(IdentifyPayload(tiny_.layout, round, segment), some);
  }
  // The record of a round in which alice handed in these payloads. Every fourth segment does not
  // include her.
  CommittedRound RecordOf(const Node& node, const std::vector<std::string>& payloads) const {
    const RoundId round = node.next_round();
    BuiltRound built = BuildDeltaRound(tiny_.layout, round, node.log_hash());
    *built.header.mutable_step() = DeltaStep();
    for (uint32_t s = 0; s < payloads.size(); ++s) {
      built.payloads[s] = ResultOfPayload(round, SegmentId(s), payloads[s]);
      v1::CommittedSegment& segment = *built.header.mutable_segments(static_cast<int>(s));
      segment.set_payload_bytes(built.payloads[s].size());
      segment.set_checksum(Xxh3(built.payloads[s]));
      if (s % 4 == 3) segment.set_included("\x02");
    }
    return Committed(tiny_.layout, built);
  }
  static void Take(Node* node, const CommittedRound& record) {
    ASSERT_EQ(node->Apply(record), absl::OkStatus());
    ASSERT_EQ(node->Feedback(record, 0), absl::OkStatus());
  }

  // Payloads, results and states of a run of one rank, by round.
  struct Lived {
    std::vector<std::vector<std::string>> payloads;
    std::vector<CommittedRound> records;
    std::vector<uint64_t> hashes;
    std::vector<std::string> states;  // before the round's result and after it
  };
  Lived LiveOnOneRank(Node* node) {
    Lived lived;
    for (uint64_t round = 0; round < kRounds; ++round) {
      lived.payloads.push_back(TakeRound(node, RoundId(round)));
      lived.states.push_back(StateBytes(*node));
      lived.records.push_back(RecordOf(*node, lived.payloads.back()));
      Take(node, lived.records.back());
      lived.hashes.push_back(node->StateHash());
      lived.states.push_back(StateBytes(*node));
    }
    return lived;
  }
  // Rounds from `first` on are the same for the node.
  void ExpectLives(Node* node, const Lived& lived, uint64_t first) {
    for (uint64_t round = first; round < kRounds; ++round) {
      EXPECT_TRUE(TakeRound(node, RoundId(round)) == lived.payloads[round]) << "round " << round;
      EXPECT_TRUE(StateBytes(*node) == lived.states[2 * round]) << "round " << round;
      Take(node, lived.records[round]);
      EXPECT_EQ(node->StateHash(), lived.hashes[round]) << "round " << round;
      EXPECT_TRUE(StateBytes(*node) == lived.states[2 * round + 1]) << "round " << round;
    }
  }

  // An element of the error buffer, wherever the rank is that has it. The ranks are at rest.
  float* ErrorElement(const Node& node, size_t tensor, size_t element) const {
    const auto kept = node.kept();
    for (const absl::Span<const float> piece : kept->elements[0][tensor]) {
      if (element < piece.size()) return const_cast<float*>(&piece[element]);
      element -= piece.size();
    }
    return nullptr;
  }

  const UpdateRuleKind rule_ =
      RuleOf(ConfigOf(GetParam()), &tiny_.layout, tiny_.model->architecture());
};
INSTANTIATE_TEST_SUITE_P(
    Models, ShardedDeltasTest,
    ::testing::Values(ModelCase{1, false, v1::INNER_OPTIMIZER_MUON},
                      ModelCase{3, true, v1::INNER_OPTIMIZER_MUON, 0, &kMoreVectors},
                      ModelCase{2, false, v1::INNER_OPTIMIZER_ADAMW},
                      ModelCase{2, true, v1::INNER_OPTIMIZER_MUON, kDeltaClip}),
    [](const auto& each) {
      return absl::StrCat(each.param.inner == v1::INNER_OPTIMIZER_MUON ? "Muon" : "AdamW",
                          each.param.local_steps, each.param.tied ? "Tied" : "",
                          each.param.delta_clip > 0 ? "Clipped" : "",
                          each.param.kind->qkv_bias ? "Biased" : "");
    });

TEST_P(ShardedDeltasTest, PayloadsStateAndParametersDoNotShowTheStrategy) {
  const auto one = MakeDeltas();
  const Lived lived = LiveOnOneRank(one.get());
  EXPECT_NE(lived.hashes[0], lived.hashes[1]);
  for (const NodeCase& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeDeltas(how);
    ExpectLives(node.get(), lived, 0);
    const DeltaReadings readings = *node->delta_readings(), expected = *one->delta_readings();
    EXPECT_EQ(readings.inner_steps, expected.inner_steps);
    EXPECT_EQ(readings.capped, expected.capped);
    EXPECT_EQ(readings.cancelled, expected.cancelled);
    EXPECT_NEAR(*readings.delta_norm, *expected.delta_norm, 1e-12 * *expected.delta_norm);
    EXPECT_NEAR(*readings.energy_kept, *expected.energy_kept, 1e-12);
  }
}

// On emulated GPUs, whose sums are in another order than the CPU's, and the same in every strategy.
TEST_P(ShardedDeltasTest, NorDoTheyOnGpus) {
  for (const bool offload : {false, true}) {
    const auto one =
        MakeDeltas({.devices = testing::MakeEmulatedDevices(), .cpu_offload = offload});
    const Lived lived = LiveOnOneRank(one.get());
    for (NodeCase how : AllCases(testing::MakeEmulatedDevices())) {
      how.cpu_offload = offload;
      SCOPED_TRACE(
          absl::StrCat(Name(how.sharding), " on ", how.ranks, offload ? " offloaded" : ""));
      ExpectLives(MakeDeltas(how).get(), lived, 0);
    }
  }
}

TEST_P(ShardedDeltasTest, ScalesDownToDeltaClip) {
  const auto node = MakeDeltas({.sharding = Sharding::kFullShard, .ranks = 2});
  TakeRound(node.get(), RoundId(0));
  const double norm = *node->delta_readings()->delta_norm;
  if (GetParam().delta_clip > 0) {
    EXPECT_NEAR(norm, kDeltaClip, 1e-4 * kDeltaClip) << "what is added to it rounds";
  } else {
    EXPECT_GT(norm, 2 * kDeltaClip) << "so that there is something to clip";
  }
}

TEST_P(ShardedDeltasTest, ForgetsState) {
  const auto one = MakeDeltas();
  const CommittedRound first = RecordOf(*one, TakeRound(one.get(), RoundId(0)));
  Take(one.get(), first);
  const std::vector<std::string> goes_on = TakeRound(one.get(), RoundId(1));
  for (const NodeCase& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto forgets = MakeDeltas(how), starts = MakeDeltas(how);
    TakeRound(forgets.get(), RoundId(0));
    Take(forgets.get(), first);
    ASSERT_EQ(starts->Apply(first), absl::OkStatus());
    ASSERT_EQ(forgets->ForgetState(), absl::OkStatus());
    EXPECT_TRUE(StateBytes(*forgets) == StateBytes(*starts));
    const std::vector<std::string> payloads = TakeRound(forgets.get(), RoundId(1));
    EXPECT_TRUE(payloads == TakeRound(starts.get(), RoundId(1)));
    EXPECT_FALSE(payloads == goes_on);
  }
}

// Those of Muon; AdamW needs no whole matrix.
TEST_P(ShardedDeltasTest, MatricesGoToTheirRanksAndBack) {
  const auto time = [&](const NodeCase& how) {
    const auto node = MakeDeltas(how);
    TakeSteps(node.get());
    return node->collective_time()[static_cast<size_t>(CollectiveOp::kAllToAll)];
  };
  EXPECT_EQ(time({.sharding = Sharding::kFullShard, .ranks = 2}) > absl::ZeroDuration(),
            GetParam().inner == v1::INNER_OPTIMIZER_MUON);
  EXPECT_EQ(time({.sharding = Sharding::kFullShard, .ranks = 1}), absl::ZeroDuration());
}

// Saved with an update pending, whose result comes to the node that goes on.
TEST_P(ShardedDeltasTest, RestoresStateOfOtherStrategies) {
  const auto one = MakeDeltas();
  const Lived lived = LiveOnOneRank(one.get());
  for (const NodeCase& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeDeltas(how);
    ASSERT_EQ(node->Apply(lived.records[0]), absl::OkStatus());
    ASSERT_TRUE(Restore(node.get(), lived.states[2]).ok());
    EXPECT_TRUE(BytesOf(node->EncodePending()) == lived.payloads[1]);
    EXPECT_TRUE(StateBytes(*node) == lived.states[2]);
    Take(node.get(), lived.records[1]);
    EXPECT_EQ(node->StateHash(), lived.hashes[1]);
    EXPECT_TRUE(StateBytes(*node) == lived.states[3]);
    ExpectLives(node.get(), lived, 2);
  }
}

// One element of the last tensor's buffer: of one rank, where ranks have parts of their own.
TEST_P(ShardedDeltasTest, AbstainsWhenRankIsNotFinite) {
  const size_t tensor = tiny_.layout.tensors().size() - 1;
  const auto spoil_a_round = [&](Node* node) {
    TakeRound(node, RoundId(0));
    node->ForgetPending();
    float* const element = ErrorElement(*node, tensor, 0);
    const float before = std::exchange(*element, std::numeric_limits<float>::infinity());
    TakeSteps(node);
    const auto payloads = node->Compress(RoundId(1), DeltaStep());
    ASSERT_TRUE(payloads.ok()) << payloads.status();
    EXPECT_THAT(*payloads, IsEmpty());
    EXPECT_FALSE(node->pending().has_value());
    EXPECT_EQ(node->kept()->local_steps, 0u) << "the inner optimizer begins anew";
    *element = before;
  };
  const auto one = MakeDeltas();
  TakeRound(one.get(), RoundId(0));
  one->ForgetPending();
  const double norm = *one->MomentumNorm();
  const auto spoilt = MakeDeltas();
  spoil_a_round(spoilt.get());
  EXPECT_EQ(*spoilt->MomentumNorm(), norm) << "the buffer is as it was";
  const std::string state = StateBytes(*spoilt);
  const std::vector<std::string> payloads = TakeRound(spoilt.get(), RoundId(2));
  for (const NodeCase& how : AllCases()) {
    SCOPED_TRACE(absl::StrCat(Name(how.sharding), " on ", how.ranks));
    const auto node = MakeDeltas(how);
    spoil_a_round(node.get());
    EXPECT_TRUE(StateBytes(*node) == state);
    EXPECT_TRUE(TakeRound(node.get(), RoundId(2)) == payloads) << "and it goes on";
  }
}

}  // namespace
}  // namespace distro::worker
