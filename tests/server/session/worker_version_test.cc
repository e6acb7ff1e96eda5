#include "server/session/worker_version.h"

#include "common/base/reason.h"
#include "common/base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

TEST(WorkerVersionTest, MayBeOneMinorBehind) {
  EXPECT_TRUE(CheckWorkerVersion("1.4.0", "1.4.7").ok());
  EXPECT_TRUE(CheckWorkerVersion("1.4.9", "1.4.7").ok());
  EXPECT_TRUE(CheckWorkerVersion("1.3.9", "1.4.0").ok());
  EXPECT_TRUE(CheckWorkerVersion(Version(), Version()).ok());
}

TEST(WorkerVersionTest, OthersAreRefusedAndBothAreNamed) {
  for (const char* theirs : {"1.2.0", "1.5.0", "2.4.0", "0.4.0", "2.3.0", "1.4294967295.0"}) {
    const absl::Status status = CheckWorkerVersion(theirs, "1.4.0");
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << theirs;
    EXPECT_EQ(ReasonOf(status), "version") << theirs;
    EXPECT_THAT(status.message(), HasSubstr(theirs));
    EXPECT_THAT(status.message(), HasSubstr("1.4.0"));
  }
}

TEST(WorkerVersionTest, MayNotBeOfOlderMajor) {
  EXPECT_EQ(ReasonOf(CheckWorkerVersion("0.9.0", "1.0.0")), "version");
  EXPECT_EQ(ReasonOf(CheckWorkerVersion("1.4294967295.0", "1.0.0")), "version");
}

TEST(WorkerVersionTest, RefusesMalformed) {
  for (const char* theirs : {"", "1", "1.4", "1.4.0.0", "1.4.x", " 1.4.0", "1.4.-1", "+1.4.0",
                             "1.4.99999999999", "a.b.c", "1..0"}) {
    EXPECT_EQ(CheckWorkerVersion(theirs, "1.4.0").code(), StatusCode::kInvalidArgument) << theirs;
  }
  const std::string zeros(1000, '0');
  EXPECT_EQ(CheckWorkerVersion("1.4." + zeros, "1.4.0").code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::server
