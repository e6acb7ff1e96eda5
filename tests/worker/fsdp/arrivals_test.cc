#include "worker/fsdp/arrivals.h"

#include "gtest/gtest.h"

namespace distro::worker {
namespace {

constexpr char kOperation[] = "all-gather \"block 3 parameters\"";

absl::Status NotDone(const Arrivals& arrivals, int64_t number) {
  return arrivals.NotDone(kOperation, number, /*rank=*/0, absl::Seconds(2));
}

TEST(ArrivalsTest, NamesTheRanksThatDidNotComeAndNotTheOneThatWaits) {
  Arrivals arrivals(4);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(arrivals.Arrive(rank), 1);
  EXPECT_EQ(arrivals.Arrive(0), 2);
  EXPECT_EQ(arrivals.Arrive(2), 2);
  EXPECT_EQ(NotDone(arrivals, 2),
            absl::DeadlineExceededError("all-gather \"block 3 parameters\": rank 1 and rank 3 did "
                                        "not come within 2s"));
}

// A rank that is ahead has arrived at all earlier operations.
TEST(ArrivalsTest, NamesTheRankItselfWhenAllHaveCome) {
  Arrivals arrivals(2);
  for (const int rank : {0, 1, 1}) arrivals.Arrive(rank);
  EXPECT_EQ(NotDone(arrivals, 1),
            absl::DeadlineExceededError(
                "all-gather \"block 3 parameters\": rank 0 did not finish within 2s"));
}

}  // namespace
}  // namespace distro::worker
