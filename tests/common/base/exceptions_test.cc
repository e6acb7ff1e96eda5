#include "common/base/exceptions.h"

#include <cerrno>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

template <typename Exception>
absl::Status StatusOf(const Exception& exception) {
  return CatchExceptions([&]() -> absl::Status { throw exception; });
}

TEST(CatchExceptionsTest, GivesWhatTheCallReturns) {
  EXPECT_EQ(CatchExceptions([] { return absl::AbortedError("why"); }), absl::AbortedError("why"));
  EXPECT_EQ(*CatchExceptions([]() -> absl::StatusOr<int> { return 7; }), 7);
}

TEST(CatchExceptionsTest, MemoryIsExhaustedAndTheRemedyIsNamed) {
  const absl::Status status = StatusOf(std::bad_alloc());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(status.message(), "out of memory: give the process more"));
}

TEST(CatchExceptionsTest, ThreadsAreExhaustedAndTheRemedyIsNamed) {
  const absl::Status status =
      StatusOf(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(status.message(), "no thread could be started: "));
  EXPECT_TRUE(absl::StrContains(status.message(), "ulimit -u"));
}

TEST(CatchExceptionsTest, KeepsCodeOfSystemError) {
  const absl::Status status = StatusOf(std::filesystem::filesystem_error(
      "status", "/a/b", std::error_code(EACCES, std::generic_category())));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(absl::StrContains(status.message(), "/a/b"));
}

TEST(CatchExceptionsTest, AnythingElseIsInternal) {
  EXPECT_EQ(StatusOf(std::length_error("too long")), absl::InternalError("too long"));
}

}  // namespace
}  // namespace distro
