#include "tests/worker/fsdp/communicator_suite.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/worker/fsdp/collectives.h"

namespace distro::worker::testing {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

// On the host, when the device is done with them.
std::vector<float> Values(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.cpu().to(at::kFloat).contiguous();
  return {wide.const_data_ptr<float>(), wide.const_data_ptr<float>() + wide.numel()};
}

std::vector<float> Numbers(int64_t begin, int64_t end, float plus = 0) {
  std::vector<float> numbers;
  for (int64_t number = begin; number < end; ++number)
    numbers.push_back(static_cast<float>(number) + plus);
  return numbers;
}

std::vector<int64_t> EqualCuts(int ranks) {
  std::vector<int64_t> cuts;
  for (int rank = 0; rank <= ranks; ++rank) cuts.push_back(5 * rank);
  return cuts;
}

}  // namespace

void CommunicatorTest::Run(
    const std::function<absl::Status(int rank, Communicator& communicator)>& body) {
  for (uint64_t seed = 1; seed <= GetParam().seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Communicators communicators = GetParam().make(ranks(), seed);
    EXPECT_THAT(OnEveryRankTogether(communicators, body), Each(absl::OkStatus()));
    communicators.clear();
    EXPECT_THAT(GetParam().failures(), IsEmpty());
  }
}

at::Tensor CommunicatorTest::Filled(int rank, int64_t elements, double value, at::ScalarType type) {
  return at::zeros({elements}, at::TensorOptions(type).device(GetParam().device(rank)))
      .fill_(value);
}

at::Tensor CommunicatorTest::Range(int rank, int64_t begin, int64_t end) {
  return at::arange(begin, end, at::kFloat).to(GetParam().device(rank));
}

// As bf16 copies are gathered: each rank writes its range of the whole itself.
TEST_P(CommunicatorTest, GathersShardInPlace) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(ranks());
    const at::Tensor whole = Filled(rank, cuts.back(), 0, at::kBFloat16);
    const at::Tensor shard = whole.narrow(0, cuts[rank], cuts[rank + 1] - cuts[rank]);
    shard.fill_(rank + 1);
    const absl::Status status =
        Finish(communicator, communicator.StartAllGather("a", cuts, shard, whole));
    for (int other = 0; other < ranks(); ++other)
      EXPECT_THAT(Values(whole.narrow(0, cuts[other], other + 1)), Each(float(other + 1)));
    return status;
  });
}

TEST_P(CommunicatorTest, GathersUnevenEqualAndEmptyRanges) {
  std::vector<int64_t> only_the_first(ranks() + 1, 5);
  only_the_first[0] = 0;
  for (const auto& cuts : {Cuts(ranks()), EqualCuts(ranks()), only_the_first}) {
    Run([&](int rank, Communicator& communicator) {
      const at::Tensor shard = Range(rank, cuts[rank], cuts[rank + 1]);
      const at::Tensor whole = Filled(rank, cuts.back(), 0);
      const absl::Status status =
          Finish(communicator, communicator.StartAllGather("a", cuts, shard, whole));
      EXPECT_EQ(Values(whole), Numbers(0, cuts.back()));
      return status;
    });
  }
}

// A rank that needs no autograd version of a tensor may write it while a graph has it: the counter
// stays.
TEST_P(CommunicatorTest, KeepsVersionCountersInGather) {
  Run([&](int rank, Communicator& communicator) {
    const std::vector<int64_t> cuts = Cuts(ranks());
    const at::Tensor whole = Filled(rank, cuts.back(), 0);
    const auto before = whole._version();
    const at::Tensor shard = Filled(rank, rank + 1, 0);
    const absl::Status status =
        Finish(communicator, communicator.StartAllGather("a", cuts, shard, whole));
    EXPECT_EQ(whole._version(), before);
    return status;
  });
}

// Whole numbers that bf16 has: the order of the sum does not matter.
TEST_P(CommunicatorTest, ReduceScatterSumsThePartsOfARange) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Accumulation accumulation : {Accumulation::kStore, Accumulation::kAdd}) {
      const float before = accumulation == Accumulation::kAdd ? 0.25f : 0.0f;
      const float sum_of_ranks = static_cast<float>(ranks() * (ranks() + 1) / 2);
      Run([&](int rank, Communicator& communicator) {
        const std::vector<int64_t> cuts = Cuts(ranks());
        const at::Tensor part = Filled(rank, cuts.back(), rank + 1, type);
        const at::Tensor sum = Filled(rank, rank + 1, 0.25);
        const absl::Status status =
            Finish(communicator,
                   communicator.StartReduceScatter("g", cuts, part, type, accumulation, sum));
        EXPECT_THAT(Values(sum), Each(sum_of_ranks + before));
        return status;
      });
    }
  }
}

// In place, over several chunks, each rank's sum where its own part was: nothing is read after it
// was overwritten.
TEST_P(CommunicatorTest, ReduceScatterWorksInPlace) {
  const int64_t each = 70'000;
  Run([&](int rank, Communicator& communicator) {
    std::vector<int64_t> cuts;
    for (int r = 0; r <= ranks(); ++r) cuts.push_back(r * each);
    at::Tensor host = at::arange(cuts.back(), at::kFloat).fmod(1000);
    const at::Tensor expected =
        host.narrow(0, cuts[rank], each).mul(ranks()).add(ranks() * (ranks() - 1) / 2);
    const at::Tensor part = host.add(rank).to(GetParam().device(rank));
    const at::Tensor sum = part.narrow(0, cuts[rank], each);
    const absl::Status status = Finish(
        communicator,
        communicator.StartReduceScatter("g", cuts, part, at::kFloat, Accumulation::kStore, sum));
    EXPECT_TRUE(sum.cpu().equal(expected));
    return status;
  });
}

TEST_P(CommunicatorTest, ReduceScatterTakesRanksWithoutAPart) {
  for (const auto& cuts : {Cuts(ranks()), EqualCuts(ranks())}) {
    for (const Accumulation accumulation : {Accumulation::kStore, Accumulation::kAdd}) {
      const float before = accumulation == Accumulation::kAdd ? 5 : 0;
      Run([&](int rank, Communicator& communicator) {
        const at::Tensor part = rank == 0 ? Range(rank, 0, cuts.back()) : at::Tensor();
        const at::Tensor sum = Filled(rank, cuts[rank + 1] - cuts[rank], 5);
        const absl::Status status =
            Finish(communicator,
                   communicator.StartReduceScatter("g", cuts, part, at::kFloat, accumulation, sum));
        EXPECT_EQ(Values(sum), Numbers(cuts[rank], cuts[rank + 1], before));
        return status;
      });
    }
  }
}

// Rank s sends s + 2 d elements to rank d, none to itself when it is rank 0.
TEST_P(CommunicatorTest, ExchangesPartsInAscendingOrder) {
  std::vector<int64_t> counts;
  for (int s = 0; s < ranks(); ++s) {
    for (int d = 0; d < ranks(); ++d) counts.push_back(s + 2 * d);
  }
  Run([&](int rank, Communicator& communicator) {
    std::vector<float> sent, expected;
    for (int other = 0; other < ranks(); ++other) {
      for (int i = 0; i < rank + 2 * other; ++i)
        sent.push_back(static_cast<float>(100 * rank + 10 * other + i));
      for (int i = 0; i < other + 2 * rank; ++i)
        expected.push_back(static_cast<float>(100 * other + 10 * rank + i));
    }
    const at::Tensor send = at::tensor(sent, at::kFloat).to(GetParam().device(rank));
    const at::Tensor receive = Filled(rank, static_cast<int64_t>(expected.size()), 0);
    const absl::Status status =
        Finish(communicator, communicator.StartAllToAll("a", counts, send, receive));
    EXPECT_EQ(Values(receive), expected);
    return status;
  });
}

TEST_P(CommunicatorTest, ManyOperationsFollowEachOther) {
  Run([&](int rank, Communicator& communicator) {
    for (int i = 0; i < 20; ++i) {
      for (const std::string& name : AllCollectives()) {
        const absl::Status status = Collective(name, communicator, GetParam().device(rank));
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  });
}

// Operations under way at once, waited for in another order; memory is used again after its Wait.
TEST_P(CommunicatorTest, OperationsMayBeUnderWayTogether) {
  Run([&](int rank, Communicator& communicator) -> absl::Status {
    const std::vector<int64_t> cuts = Cuts(ranks());
    for (int i = 0; i < 5; ++i) {
      const at::Tensor shard = Range(rank, cuts[rank] + i, cuts[rank + 1] + i);
      const at::Tensor whole = Filled(rank, cuts.back(), 0);
      const at::Tensor part = Filled(rank, cuts.back(), rank + i);
      const at::Tensor sum = Filled(rank, rank + 1, 1);
      const auto gather = communicator.StartAllGather("a", cuts, shard, whole);
      const auto reduce =
          communicator.StartReduceScatter("g", cuts, part, at::kFloat, Accumulation::kAdd, sum);
      absl::Status status = Finish(communicator, reduce);
      if (status.ok()) status = Finish(communicator, gather);
      if (!status.ok()) return status;
      EXPECT_EQ(Values(whole), Numbers(i, cuts.back() + i));
      EXPECT_THAT(Values(sum),
                  Each(static_cast<float>(1 + ranks() * i + ranks() * (ranks() - 1) / 2)));
    }
    return communicator.Barrier("end");
  });
}

}  // namespace distro::worker::testing
