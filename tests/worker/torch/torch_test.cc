#include "worker/torch/torch.h"

#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Sanitizers end the program when an allocation is too large for them; the test below wants the
// error that Torch makes of it.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace distro::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CatchTorchTest, PassesAStatusOn) {
  EXPECT_EQ(CatchTorch("here", [] { return absl::NotFoundError("x"); }), absl::NotFoundError("x"));
}

TEST(CatchTorchTest, TurnsATorchErrorIntoInternalWithoutItsBacktrace) {
  const absl::Status status = CatchTorch("product", [] {
    at::linear(at::arange(3, at::kFloat), at::arange(4, at::kFloat));
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("product: "));
  EXPECT_THAT(status.message(), Not(HasSubstr("frame #")));
}

TEST(CatchTorchTest, NamesMissingMemoryResourceExhausted) {
  const absl::Status status = CatchTorch("buffer", [] {
    at::arange(int64_t{1} << 50, at::kByte);
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace distro::worker
