#include "worker/exit_code.h"

#include <csignal>

#include "gtest/gtest.h"

namespace distro::worker {
namespace {

TEST(ExitCodeTest, EveryEndHasItsCode) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus(), 0), 0);
  EXPECT_EQ(ExitCodeFor(absl::InternalError(""), 0), 1);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError(""), 0), 2);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError(""), 0), 2);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("other data"), 0), 3);
  EXPECT_EQ(ExitCodeFor(absl::AbortedError("replaced"), 0), 4);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("round 3: diverged: the hash is another"), 0),
            5);
}

TEST(ExitCodeTest, ASignalShowsInTheCode) {
  EXPECT_EQ(ExitCodeFor(absl::CancelledError(""), SIGINT), 130);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError(""), SIGTERM), 143);
}

// The run may be done just before the signal is seen.
TEST(ExitCodeTest, ARunThatIsDoneIsDone) { EXPECT_EQ(ExitCodeFor(absl::OkStatus(), SIGTERM), 0); }

}  // namespace
}  // namespace distro::worker
