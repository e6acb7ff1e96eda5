#include "kernels/replica/replica.h"

#include <bit>
#include <cstring>
#include <optional>

#include "absl/algorithm/container.h"
#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/base/reason.h"
#include "common/method/signs/payload.h"
#include "common/run/record/log_reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/testing/round_builder.h"

namespace distro {
namespace {

TensorBuffer Copy(const Layout& layout, const TensorBuffer& buffer) {
  TensorBuffer copy(layout);
  for (int i = 0; i < buffer.tensors(); ++i) absl::c_copy(buffer.tensor(i), copy.tensor(i).begin());
  return copy;
}

using ::distro::testing::BuildRound;
using ::distro::testing::BuiltRound;
using ::distro::testing::Committed;
using ::distro::testing::SmallLayout;
using ::distro::testing::SomeVotes;
using ::testing::HasSubstr;

class ReplicaTest : public ::testing::Test {
 protected:
  TensorBuffer SomeParameters() const {
    TensorBuffer parameters(layout_);
    uint64_t i = 0;
    for (int t = 0; t < parameters.tensors(); ++t) {
      for (float& p : parameters.tensor(t)) {
        p = static_cast<float>(static_cast<int64_t>(SplitMix64(3, i++) >> 40) - (1 << 23)) * 1e-7f;
      }
    }
    return parameters;
  }

  Replica MakeReplica() {
    return Replica(&layout_, backend_.get(), SomeParameters(), RoundId(5), 77);
  }

  const Layout layout_ = SmallLayout();
  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
};

bool SameBits(const TensorBuffer& a, const TensorBuffer& b) {
  for (int i = 0; i < a.tensors(); ++i) {
    if (std::memcmp(a.tensor(i).data(), b.tensor(i).data(), a.tensor(i).size() * 4) != 0) {
      return false;
    }
  }
  return true;
}

// The same votes applied tensor by tensor, without segments: segments must not show in the result.
TEST_F(ReplicaTest, AppliesEveryBlockOnce) {
  Votes all;
  for (uint32_t s = 0; s < layout_.segments(); ++s) {
    const Votes part = SomeVotes(layout_.SegmentBlocks(SegmentId(s)), 1000 * 5 + s);
    const uint32_t base = all.offsets.back();
    for (size_t b = 1; b < part.offsets.size(); ++b) all.offsets.push_back(base + part.offsets[b]);
    all.positions.insert(all.positions.end(), part.positions.begin(), part.positions.end());
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
  TensorBuffer expected = SomeParameters();
  for (int t = 0; t < expected.tensors(); ++t) {
    const TensorLayout& tensor = layout_.tensors()[t];
    const int64_t blocks = tensor.matrix.Blocks();
    const VotesView view = {
        absl::MakeConstSpan(all.offsets).subspan(tensor.first_block, blocks + 1),
        absl::MakeConstSpan(all.positions).subspan(all.offsets[tensor.first_block]),
        absl::MakeConstSpan(all.values).subspan(all.offsets[tensor.first_block])};
    const size_t entries =
        all.offsets[tensor.first_block + blocks] - all.offsets[tensor.first_block];
    const VotesView exact = {view.offsets, view.positions.subspan(0, entries),
                             view.values.subspan(0, entries)};
    // The 1-D tensor b does not decay.
    const SignApplyOptions options = {0.25f, t == 1 ? 0.0f : 0.0625f};
    uint32_t invalid = kAllBlocksValid;
    backend_->ApplyVotes(tensor.matrix, {0, blocks}, options, exact, expected.tensor(t), &invalid);
    ASSERT_EQ(invalid, kAllBlocksValid);
  }
  Replica replica = MakeReplica();
  const CommittedRound round = Committed(layout_, BuildRound(layout_, RoundId(5), 77));
  ASSERT_TRUE(replica.Apply(round).ok());
  EXPECT_TRUE(SameBits(replica.parameters(), expected));
  EXPECT_FALSE(SameBits(replica.parameters(), SomeParameters()));
  EXPECT_EQ(replica.next_round(), RoundId(6));
  EXPECT_EQ(replica.log_hash(), round.hash);
}

TEST_F(ReplicaTest, GivesTheSameBitsOnEveryBackend) {
  const std::unique_ptr<Backend> fast = MakeCpuBackend();
  Replica reference = MakeReplica();
  Replica other(&layout_, fast.get(), SomeParameters(), RoundId(5), 77);
  for (uint64_t t = 5; t < 12; ++t) {
    const CommittedRound round =
        Committed(layout_, BuildRound(layout_, RoundId(t), reference.log_hash()));
    ASSERT_TRUE(reference.Apply(round).ok());
    ASSERT_TRUE(other.Apply(round).ok());
    ASSERT_EQ(reference.StateHash(), other.StateHash());
  }
  EXPECT_TRUE(SameBits(reference.parameters(), other.parameters()));
}

// Shapes around a tile's width, cut edges, segments that end inside a tile and inside a row of
// blocks.
TEST_F(ReplicaTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  const std::vector<TensorSpec> tensors = {{"a", {1}},        {"b", {130}},      {"c", {100, 70}},
                                           {"d", {130, 512}}, {"e", {130, 513}}, {"f", {65, 1100}},
                                           {"g", {7, 9, 33}}, {"h", {5000}}};
  for (int segment_blocks : {1, 3, 7, 10, 1000}) {
    const Layout layout = *Layout::Create(*Manifest::Create(tensors), segment_blocks);
    TensorBuffer begin(layout);
    for (int t = 0; t < begin.tensors(); ++t) {
      float next = 0.5f;
      for (float& p : begin.tensor(t)) p = next += 0.125f;
    }
    std::optional<TensorBuffer> expected;
    for (int threads = 1; threads <= 5; ++threads) {
      std::vector<std::unique_ptr<Backend>> backends;
      std::vector<Backend*> borrowed;
      for (int i = 0; i < threads; ++i) backends.push_back(MakeCpuBackend());
      for (const auto& backend : backends) borrowed.push_back(backend.get());
      Replica replica(&layout, borrowed, Copy(layout, begin), RoundId(5), 77);
      EXPECT_EQ(replica.StateHash(), StateHash(layout, begin, backend_.get()));
      for (uint64_t t = 5; t < 8; ++t) {
        const CommittedRound round =
            Committed(layout, BuildRound(layout, RoundId(t), replica.log_hash()));
        ASSERT_TRUE(replica.Apply(round).ok());
      }
      EXPECT_EQ(replica.StateHash(), StateHash(layout, replica.parameters(), backend_.get()));
      if (!expected.has_value()) {
        expected = Copy(layout, replica.parameters());
        EXPECT_FALSE(SameBits(*expected, begin));
      }
      EXPECT_TRUE(SameBits(replica.parameters(), *expected))
          << threads << " threads, segments of " << segment_blocks;
    }
  }
}

TEST_F(ReplicaTest, TensorHashesFollowTheParameters) {
  Replica replica = MakeReplica();
  for (uint64_t t = 5; t < 8; ++t) {
    for (int i = 0; i < replica.parameters().tensors(); ++i) {
      uint64_t hash = 0;
      backend_->StateHash(0, replica.parameters().tensor(i), &hash);
      EXPECT_EQ(replica.tensor_hashes()[i], hash);
    }
    EXPECT_EQ(replica.StateHash(), CombineTensorHashes(replica.tensor_hashes()));
    ASSERT_TRUE(
        replica.Apply(Committed(layout_, BuildRound(layout_, RoundId(t), replica.log_hash())))
            .ok());
  }
}

TEST_F(ReplicaTest, RefusesARoundOutOfTurn) {
  Replica replica = MakeReplica();
  for (uint64_t t : {4, 6}) {
    const absl::Status status =
        replica.Apply(Committed(layout_, BuildRound(layout_, RoundId(t), 77)));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("expects round 5"));
  }
  EXPECT_TRUE(SameBits(replica.parameters(), SomeParameters()));
}

TEST_F(ReplicaTest, RefusesADivergedLog) {
  Replica replica = MakeReplica();
  const absl::Status status =
      replica.Apply(Committed(layout_, BuildRound(layout_, RoundId(5), 78)));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "diverged");
  EXPECT_EQ(replica.next_round(), RoundId(5));
}

// The last segment's payload is well-formed for its listed checksum, but it is of another round.
TEST_F(ReplicaTest, ChangesNothingWhenOneSegmentDoesNotDecode) {
  BuiltRound built = BuildRound(layout_, RoundId(5), 77);
  built.payloads[2] = BuildRound(layout_, RoundId(6), 77).payloads[2];
  built.header.mutable_segments(2)->set_payload_bytes(built.payloads[2].size());
  built.header.mutable_segments(2)->set_checksum(Xxh3(built.payloads[2]));
  const std::unique_ptr<Backend> other = MakeReferenceBackend();
  Replica replica(&layout_, {backend_.get(), other.get()}, SomeParameters(), RoundId(5), 77);
  const uint64_t before = replica.StateHash();
  const absl::Status status = replica.Apply(Committed(layout_, built));
  EXPECT_EQ(replica.StateHash(), before);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("round 5: segment 2: "));
  EXPECT_TRUE(SameBits(replica.parameters(), SomeParameters()));
  EXPECT_EQ(replica.next_round(), RoundId(5));
  EXPECT_EQ(replica.log_hash(), 77);
}

TEST_F(ReplicaTest, StateHashFollowsTheDesign) {
  const TensorBuffer parameters = SomeParameters();
  std::string sums;
  for (int t = 0; t < parameters.tensors(); ++t) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parameters.tensor(t).size(); ++i) {
      sum += Mix((uint64_t{i} << 32) + std::bit_cast<uint32_t>(parameters.tensor(t)[i]) +
                 kGoldenGamma);
    }
    sums.append(reinterpret_cast<const char*>(&sum), 8);
  }
  EXPECT_EQ(StateHash(layout_, parameters, backend_.get()), Xxh3(sums));
  TensorBuffer other = SomeParameters();
  other.tensor(2)[4095] = -other.tensor(2)[4095];
  EXPECT_NE(StateHash(layout_, other, backend_.get()), Xxh3(sums));
}

}  // namespace
}  // namespace distro
