#include "worker/fsdp/thread_communicator.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/collectives.h"
#include "tests/worker/fsdp/communicator_suite.h"
#include "tests/worker/fsdp/ranks.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::Communicators;
using ::distro::worker::testing::CommunicatorTest;
using ::distro::worker::testing::Cuts;
using ::distro::worker::testing::Finish;
using ::distro::worker::testing::OnEveryRank;
using ::testing::Each;

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
TEST_P(ThreadCommunicatorTest, ReleasesTensorsAfterOperation) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadCommunicatorTest, ::testing::Values(1, 2, 3, 4));

std::vector<testing::RanksOfAKind> Threads() {
  std::vector<testing::RanksOfAKind> kinds;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    testing::RanksOfAKind kind;
    kind.name = "Threads";
    kind.ranks = ranks;
    kind.make = [](int number, uint64_t) { return Make(number); };
    kinds.push_back(kind);
  }
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Threads, CommunicatorTest, ::testing::ValuesIn(Threads()),
                         CommunicatorTest::NameOf);

}  // namespace
}  // namespace distro::worker
