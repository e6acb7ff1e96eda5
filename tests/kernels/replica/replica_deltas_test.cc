// A replica that applies rounds of deltas.
#include <cstring>
#include <memory>
#include <variant>
#include <vector>

#include "common/method/deltas/step.h"
#include "common/method/methods.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/deltas_view.h"
#include "kernels/replica/replica.h"
#include "tests/testing/round_builder.h"

namespace distro {
namespace {

using ::distro::testing::BuildDeltaRound;
using ::distro::testing::BuiltRound;
using ::distro::testing::Committed;
using ::testing::HasSubstr;

// The first tensor is sent as DCT, the others as elements. Tensors a and d are larger than a tile,
// and their last blocks in a row are narrower.
Layout OddLayout(int segment_blocks) {
  return *Layout::Create(
      *Manifest::Create(
          {{"a", {130, 513}}, {"b", {130}}, {"c", {7, 9, 33}}, {"d", {65, 1100}}, {"e", {64, 64}}}),
      segment_blocks);
}

TensorBuffer SomeParameters(const Layout& layout) {
  TensorBuffer parameters(layout);
  float next = -4;
  for (int t = 0; t < parameters.tensors(); ++t) {
    for (float& p : parameters.tensor(t)) p = next += 1e-3f;
  }
  return parameters;
}

bool SameBits(const TensorBuffer& a, const TensorBuffer& b) {
  for (int i = 0; i < a.tensors(); ++i) {
    if (std::memcmp(a.tensor(i).data(), b.tensor(i).data(), a.tensor(i).size() * 4) != 0)
      return false;
  }
  return true;
}

// Tensor by tensor, without segments and tiles.
void ApplyWhole(const Layout& layout, const CommittedRound& round, Backend* backend,
                TensorBuffer* parameters) {
  const v1::DeltaParameters& deltas = round.header->step().deltas();
  const DeltaResult all =
      Concatenate(std::get<std::vector<DeltaResult>>(*testing::Decode(layout, round)));
  for (int t = 0; t < parameters->tensors(); ++t) {
    const TensorLayout& tensor = layout.tensors()[t];
    const int64_t blocks = tensor.matrix.Blocks();
    uint32_t invalid = kAllBlocksValid;
    backend->ApplyDeltas(tensor.matrix, {.first = 0, .count = blocks},
                         {.alpha = OuterRate(deltas), .as_dct = IsAsDct(deltas, t)},
                         ViewOf(all, {.first = tensor.first_block, .count = blocks}),
                         parameters->tensor(t), &invalid);
    ASSERT_EQ(invalid, kAllBlocksValid) << "tensor " << t;
  }
}

class ReplicaDeltasTest : public ::testing::Test {
 protected:
  Replica MakeReplica(const Layout& layout, int threads = 1) {
    std::vector<Backend*> borrowed;
    for (int i = 0; i < threads; ++i) borrowed.push_back(backends_[i].get());
    return Replica(&layout, borrowed, SomeParameters(layout), RoundId(5), 77);
  }

  const std::unique_ptr<Backend> reference_ = MakeReferenceBackend();
  const std::vector<std::unique_ptr<Backend>> backends_ = [] {
    std::vector<std::unique_ptr<Backend>> backends;
    for (int i = 0; i < 2; ++i) backends.push_back(MakeCpuBackend());
    return backends;
  }();
};

TEST_F(ReplicaDeltasTest, AppliesEveryBlockOnceWithAnyNumberOfThreads) {
  for (const int segment_blocks : {1, 3, 10}) {
    const Layout layout = OddLayout(segment_blocks);
    for (const int threads : {1, 2}) {
      Replica replica = MakeReplica(layout, threads);
      TensorBuffer expected = SomeParameters(layout);
      for (uint64_t t = 5; t < 8; ++t) {
        const CommittedRound round =
            Committed(layout, BuildDeltaRound(layout, RoundId(t), replica.log_hash()));
        ApplyWhole(layout, round, reference_.get(), &expected);
        ASSERT_EQ(replica.Apply(round), absl::OkStatus());
        EXPECT_EQ(replica.log_hash(), round.hash);
      }
      EXPECT_TRUE(SameBits(replica.parameters(), expected))
          << threads << " threads, segments of " << segment_blocks;
      EXPECT_EQ(replica.StateHash(), StateHash(layout, expected, reference_.get()));
      EXPECT_EQ(replica.next_round(), RoundId(8));
    }
  }
}

// A block of the DCT moves everywhere, another only where it has entries.
TEST_F(ReplicaDeltasTest, MovesTensors) {
  const Layout layout = OddLayout(3);
  const TensorBuffer begin = SomeParameters(layout);
  Replica replica = MakeReplica(layout);
  ASSERT_TRUE(replica.Apply(Committed(layout, BuildDeltaRound(layout, RoundId(5), 77))).ok());
  for (int t = 0; t < begin.tensors(); ++t) {
    int64_t moved = 0;
    for (size_t i = 0; i < begin.tensor(t).size(); ++i)
      moved += begin.tensor(t)[i] != replica.parameters().tensor(t)[i] ? 1 : 0;
    const MatrixShape& matrix = layout.tensors()[t].matrix;
    if (t == 0)
      EXPECT_GT(moved, matrix.elements * 3 / 4);
    else
      EXPECT_EQ(moved, 2 * matrix.Blocks()) << "tensor " << t;
  }
}

// The result is as good as any but for the cap of the last tensor, whose blocks have codes from 190
// on.
TEST_F(ReplicaDeltasTest, RefusesResultAboveCap) {
  const Layout layout = OddLayout(3);
  BuiltRound built = BuildDeltaRound(layout, RoundId(5), 77);
  built.header.mutable_step()->mutable_deltas()->mutable_caps()->back() = static_cast<char>(189);
  Replica replica = MakeReplica(layout, 2);
  const uint64_t before = replica.StateHash();
  const absl::Status status = replica.Apply(Committed(layout, built));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is above the cap 189"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("round 5: segment "));
  EXPECT_TRUE(SameBits(replica.parameters(), SomeParameters(layout)));
  EXPECT_EQ(replica.StateHash(), before);
  EXPECT_EQ(replica.next_round(), RoundId(5));
  EXPECT_EQ(replica.log_hash(), 77u);
}

}  // namespace
}  // namespace distro
