#include "worker/fsdp/thread_communicator.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/collectives.h"
#include "tests/worker/fsdp/ranks.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::AllCollectives;
using ::distro::worker::testing::Collective;
using ::distro::worker::testing::Communicators;
using ::distro::worker::testing::Cuts;
using ::distro::worker::testing::Finish;
using ::distro::worker::testing::OnEveryRank;
using ::testing::Each;
using ::testing::ElementsAre;

Communicators Make(int ranks) { return MakeThreadGroup(ranks, {})->TakeCommunicators(); }

std::vector<float> Values(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kFloat).contiguous();
  return {wide.const_data_ptr<float>(), wide.const_data_ptr<float>() + wide.numel()};
}

class ThreadCommunicatorTest : public ::testing::TestWithParam<int> {
 protected:
  void Run(const std::function<absl::Status(int rank, Communicator& communicator)>& body) {
    Communicators communicators = Make(GetParam());
    EXPECT_THAT(OnEveryRank(communicators, body), Each(absl::OkStatus()));
  }
};

TEST_P(ThreadCommunicatorTest, AllGatherJoinsUnevenShardsOnEveryRank) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(GetParam());
    const at::Tensor shard = at::arange(cuts[rank], cuts[rank + 1], at::kFloat);
    const at::Tensor whole = at::zeros({cuts.back()}, at::kFloat);
    const absl::Status status =
        Finish(communicator, communicator.StartAllGather("a", cuts, shard, whole));
    EXPECT_TRUE(whole.equal(at::arange(cuts.back(), at::kFloat)));
    return status;
  });
}

// As bf16 copies are gathered: each rank writes its range of the whole itself.
TEST_P(ThreadCommunicatorTest, AllGatherTakesAShardThatLiesAtItsPlace) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(GetParam());
    const at::Tensor whole = at::zeros({cuts.back()}, at::kBFloat16);
    const at::Tensor shard = whole.narrow(0, cuts[rank], cuts[rank + 1] - cuts[rank]);
    shard.fill_(rank + 1);
    const absl::Status status =
        Finish(communicator, communicator.StartAllGather("a", cuts, shard, whole));
    for (int other = 0; other < GetParam(); ++other) {
      EXPECT_THAT(Values(whole.narrow(0, cuts[other], other + 1)), Each(float(other + 1)));
    }
    return status;
  });
}

// A rank that needs no autograd version of a tensor may write it while a graph has it: the counter
// stays.
TEST_P(ThreadCommunicatorTest, AllGatherLeavesVersionCountersAlone) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(GetParam());
    const at::Tensor whole = at::zeros({cuts.back()}, at::kFloat);
    const auto before = whole._version();
    const at::Tensor shard = at::zeros({rank + 1}, at::kFloat);
    const absl::Status status =
        Finish(communicator, communicator.StartAllGather("a", cuts, shard, whole));
    EXPECT_EQ(whole._version(), before);
    return status;
  });
}

// Other orders would give other bits: 1e8 + 1 is 1e8 in f32.
TEST_P(ThreadCommunicatorTest, ReduceScatterAddsInAscendingRankOrder) {
  const std::vector<float> kParts = {1e8f, 1.0f, -1e8f, 3.0f};
  for (const Accumulation accumulation : {Accumulation::kStore, Accumulation::kAdd}) {
    float expected = accumulation == Accumulation::kAdd ? 0.25f : 0.0f;
    for (int rank = 0; rank < GetParam(); ++rank) expected += kParts[rank % 4];
    Run([&](int rank, Communicator& communicator) {
      const std::vector<int64_t> cuts = Cuts(GetParam());
      const at::Tensor part = at::zeros({cuts.back()}, at::kFloat).fill_(kParts[rank % 4]);
      const at::Tensor sum = at::zeros({rank + 1}, at::kFloat).fill_(0.25f);
      const absl::Status status =
          Finish(communicator,
                 communicator.StartReduceScatter("g", cuts, part, at::kFloat, accumulation, sum));
      EXPECT_THAT(Values(sum), Each(expected));
      return status;
    });
  }
}

TEST_P(ThreadCommunicatorTest, ReduceScatterSumsWideElementsInF32) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(GetParam());
    // 256 + 1 is 256 in bf16.
    const at::Tensor part = at::zeros({cuts.back()}, at::kBFloat16).fill_(rank == 0 ? 256 : 1);
    const at::Tensor sum = at::zeros({rank + 1}, at::kFloat);
    const absl::Status status = Finish(
        communicator,
        communicator.StartReduceScatter("g", cuts, part, at::kBFloat16, Accumulation::kStore, sum));
    EXPECT_THAT(Values(sum), Each(256.0f + static_cast<float>(GetParam() - 1)));
    return status;
  });
}

// In place, over several chunks, each rank's sum where its own part was: nothing is read after it
// was overwritten.
TEST_P(ThreadCommunicatorTest, ReduceScatterWorksInPlace) {
  const int64_t each = 70'000;
  Run([&](int rank, Communicator& communicator) {
    std::vector<int64_t> cuts;
    for (int r = 0; r <= GetParam(); ++r) cuts.push_back(r * each);
    const at::Tensor part = at::arange(cuts.back(), at::kFloat).fmod(1000).add(rank);
    const at::Tensor sum = part.narrow(0, cuts[rank], each);
    at::Tensor expected = sum.sub(rank).mul(GetParam()).add(GetParam() * (GetParam() - 1) / 2);
    const absl::Status status = Finish(
        communicator,
        communicator.StartReduceScatter("g", cuts, part, at::kFloat, Accumulation::kStore, sum));
    EXPECT_TRUE(sum.equal(expected));
    return status;
  });
}

TEST_P(ThreadCommunicatorTest, RanksWithoutAPartAddNothing) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(GetParam());
    const at::Tensor part =
        rank == 0 ? at::zeros({cuts.back()}, at::kFloat).fill_(-0.0f) : at::Tensor();
    const at::Tensor sum = at::zeros({rank + 1}, at::kFloat).fill_(5);
    const absl::Status status = Finish(
        communicator,
        communicator.StartReduceScatter("g", cuts, part, at::kFloat, Accumulation::kStore, sum));
    for (const float value : Values(sum)) EXPECT_TRUE(value == 0 && std::signbit(value));
    return status;
  });
}

// Rank s sends s + 2 d elements to rank d, none to itself when it is rank 0.
TEST_P(ThreadCommunicatorTest, AllToAllBringsEachPartToItsRankInAscendingOrder) {
  const int ranks = GetParam();
  std::vector<int64_t> counts;
  for (int s = 0; s < ranks; ++s) {
    for (int d = 0; d < ranks; ++d) counts.push_back(s + 2 * d);
  }
  Run([&](int rank, Communicator& communicator) {
    std::vector<float> sent, expected;
    for (int other = 0; other < ranks; ++other) {
      for (int i = 0; i < rank + 2 * other; ++i)
        sent.push_back(static_cast<float>(100 * rank + 10 * other + i));
      for (int i = 0; i < other + 2 * rank; ++i)
        expected.push_back(static_cast<float>(100 * other + 10 * rank + i));
    }
    const at::Tensor receive = at::zeros({static_cast<int64_t>(expected.size())}, at::kFloat);
    const absl::Status status =
        Finish(communicator,
               communicator.StartAllToAll("a", counts, at::tensor(sent, at::kFloat), receive));
    EXPECT_EQ(Values(receive), expected);
    return status;
  });
}

TEST(AllToAllTest, RefusesWhatTheCountsDoNotSay) {
  const at::Tensor two = at::zeros({2}, at::kFloat), three = at::zeros({3}, at::kFloat);
  const std::vector<int64_t> right = {2}, negative = {-1}, many = {2, 2};
  EXPECT_EQ(Make(1)[0]->StartAllToAll("a", right, two, three).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Make(1)[0]->StartAllToAll("a", right, three, two).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Make(1)[0]->StartAllToAll("a", right, two, two.to(at::kBFloat16)).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const auto& counts : {negative, many}) {
    EXPECT_EQ(Make(1)[0]->StartAllToAll("a", counts, two, two).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// Its memory can be freed or used again at once, whatever the other ranks do meanwhile.
TEST_P(ThreadCommunicatorTest, NobodyHoldsATensorAfterItsOperation) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(GetParam());
    const at::Tensor part = at::ones({cuts.back()}, at::kFloat);
    const at::Tensor sum = at::zeros({rank + 1}, at::kFloat);
    for (int i = 0; i < 200; ++i) {
      const absl::Status status = Finish(
          communicator,
          communicator.StartReduceScatter("g", cuts, part, at::kFloat, Accumulation::kStore, sum));
      if (!status.ok()) return status;
      if (part.use_count() != 1 || part.storage().use_count() != 1) {
        return absl::InternalError("another rank holds this rank's part");
      }
    }
    return absl::OkStatus();
  });
}

TEST_P(ThreadCommunicatorTest, ManyOperationsFollowEachOther) {
  Run([&](int rank, Communicator& communicator) {
    for (int i = 0; i < 100; ++i) {
      for (const std::string& name : AllCollectives()) {
        const absl::Status status = Collective(name, communicator);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadCommunicatorTest, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace distro::worker
