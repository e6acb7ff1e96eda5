#include "common/base/thread_count.h"

#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::StartsWith;

TEST(ThreadCountTest, AsManyAsProcessorsPass) {
  EXPECT_TRUE(CheckThreads("--threads", 1).ok());
  EXPECT_TRUE(CheckThreads("--threads", Cores()).ok());
  EXPECT_TRUE(CheckThreads("--ranks", 0, /*least=*/0).ok());
}

TEST(ThreadCountTest, NoneAndFarTooManyAreRefused) {
  for (const int count : {-1, 0, 32 * Cores() + 1, 1025}) {
    const absl::Status status = CheckThreads("--threads", count);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << count;
    EXPECT_THAT(std::string(status.message()), StartsWith("--threads: "));
  }
}

}  // namespace
}  // namespace distro
