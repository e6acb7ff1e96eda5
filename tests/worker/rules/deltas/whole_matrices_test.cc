// What a step of whole matrices allocates is what the plan of memory has for it. Memory of this
// process is counted: it is its own.
#include "worker/rules/deltas/whole_matrices.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/newton_schulz.h"
#include "worker/rules/host_backends.h"
#include "worker/rules/rank_exchange.h"

namespace {

std::atomic<int64_t> allocated = 0;
std::atomic<int64_t> most = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  allocated += static_cast<int64_t>(malloc_usable_size(memory));
  most = std::max<int64_t>(most, allocated);
  return memory;
}
// The other form, which the standard library uses for its scratch, would come from elsewhere.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return operator new(bytes);
}
void operator delete(void* memory) noexcept {
  allocated -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace distro::worker {
namespace {

// There are no other ranks: received values are arbitrary, and sent values are discarded.
class NobodyElse final : public RankExchange {
 public:
  explicit NobodyElse(int ranks) : ranks_(ranks) {}
  int rank() const override { return 0; }
  int ranks() const override { return ranks_; }
  absl::Status AllToAll(absl::string_view, absl::Span<const int64_t>, const SharedFloats&,
                        const SharedFloats& receive) override {
    std::ranges::fill(receive.floats(), 0.25f);
    return exchange_;
  }
  absl::Status AllGather(absl::string_view, absl::Span<const int64_t>,
                         const SharedFloats&) override {
    return exchange_;
  }
  void FailWith(const absl::Status& status) { exchange_ = status; }

 private:
  const int ranks_;
  absl::Status exchange_;
};

class WholeMatricesTest : public ::testing::Test {
 protected:
  ShardPlan Shards(int ranks) const { return *ShardPlan::Create(layout_, {{0, 1, 2}}, ranks); }
  static absl::Status Orthogonalize(const WholeMatrices& matrices) {
    return matrices.Orthogonalize(
        [](size_t, absl::Span<float> direction) {
          std::ranges::fill(direction, 0.5f);
          return absl::OkStatus();
        },
        [](size_t, absl::Span<const float>) { return absl::OkStatus(); });
  }
  static int64_t MostBytesOf(const WholeMatrices& matrices) {
    const int64_t before = allocated;
    most = before;
    EXPECT_EQ(Orthogonalize(matrices), absl::OkStatus());
    EXPECT_EQ(allocated, before) << "nothing is kept between steps";
    return most - before;
  }
  void ExpectPlanned(const RuleShard& shard, int ranks) {
    const WholeMatrices matrices(host_.Of(shard), needs_whole_, 5);
    const auto planned = static_cast<double>(WaveScratchBytes(
        layout_, MatrixWaves(layout_, needs_whole_, ranks), shard.shards, /*rank=*/0));
    EXPECT_NEAR(planned / static_cast<double>(MostBytesOf(matrices)), 1, 0.05) << ranks;
  }

  const Layout layout_ = *Layout::Create(*Manifest::Create({{.name = "a", .shape = {512, 256}},
                                                            {.name = "b", .shape = {640}},
                                                            {.name = "c", .shape = {320, 512}}}),
                                         16);
  const HostBackends host_;
  const std::vector<bool> needs_whole_ = {true, false, true};
};

TEST_F(WholeMatricesTest, AllocatesAsPlanned) {
  const ShardPlan alone = Shards(1);
  ExpectPlanned({.layout = &layout_, .runs = WholeRuns(layout_)}, 1);
  ExpectPlanned({.layout = &layout_, .runs = alone.shard(0).runs, .shards = &alone}, 1);
}

TEST_F(WholeMatricesTest, AllocatesAsPlannedOfSeveral) {
  for (const int ranks : {2, 3}) {
    NobodyElse nobody(ranks);
    const ShardPlan shards = Shards(ranks);
    ExpectPlanned(
        {.layout = &layout_, .runs = shards.shard(0).runs, .exchange = &nobody, .shards = &shards},
        ranks);
    ExpectPlanned({.layout = &layout_, .runs = WholeRuns(layout_), .exchange = &nobody}, ranks);
  }
}

TEST_F(WholeMatricesTest, EndsStepOnOtherRanksError) {
  NobodyElse nobody(2);
  nobody.FailWith(absl::AbortedError("rank 1 failed"));
  const ShardPlan shards = Shards(2);
  for (const bool cut : {true, false}) {
    const RuleShard shard = {.layout = &layout_,
                             .runs = cut ? shards.shard(0).runs : WholeRuns(layout_),
                             .exchange = &nobody,
                             .shards = cut ? &shards : nullptr};
    EXPECT_EQ(Orthogonalize(WholeMatrices(host_.Of(shard), needs_whole_, 5)).code(),
              absl::StatusCode::kAborted);
  }
}

// Muon's direction of a matrix is that of Newton-Schulz, of nothing else.
TEST_F(WholeMatricesTest, AloneItIsNewtonSchulzOfEachMatrix) {
  const WholeMatrices matrices(host_.Of({.layout = &layout_, .runs = WholeRuns(layout_)}),
                               needs_whole_, 5);
  const auto make = [](size_t run, absl::Span<float> direction) {
    for (size_t i = 0; i < direction.size(); ++i)
      direction[i] = static_cast<float>((i * 7919 + run) % 1009) - 500;
    return absl::OkStatus();
  };
  int used = 0;
  const absl::Status status =
      matrices.Orthogonalize(make, [&](size_t run, absl::Span<const float> direction) {
        ++used;
        const MatrixShape& matrix = layout_.tensors()[run].matrix;
        std::vector<float> expected(matrix.elements);
        EXPECT_EQ(make(run, absl::MakeSpan(expected)), absl::OkStatus());
        NewtonSchulz(*SupportedVectorKernels().back().matrix, matrix.rows, matrix.cols, 5,
                     absl::MakeSpan(expected));
        EXPECT_TRUE(std::ranges::equal(direction, expected)) << run;
        return absl::OkStatus();
      });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(used, 2);
}

}  // namespace
}  // namespace distro::worker
