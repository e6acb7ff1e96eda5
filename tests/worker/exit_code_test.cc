#include "worker/exit_code.h"

#include <csignal>
#include <string>
#include <utility>

#include "common/base/reason.h"
#include "common/client/probe/connection_fault.h"
#include "gtest/gtest.h"

namespace distro::worker {
namespace {

TEST(ExitCodeTest, FollowsReason) {
  const std::pair<const char*, int> kCodes[] = {
      {"other_data", 3},   {"other_run", 3},    {"replaced", 4},    {"diverged", 5},
      {"pruned", 5},       {"version", 6},      {"quarantined", 7}, {"unauthenticated", 8},
      {"wrong_name", 8},   {"role", 8},         {"too_slow", 9},    {"rank_failed", 10},
      {"does_not_fit", 2}, {"data_changed", 2}, {"not_finite", 19},
  };
  for (const auto& [reason, code] : kCodes) {
    // With any status code.
    EXPECT_EQ(ExitCodeFor(ErrorWithReason(absl::StatusCode::kInternal, reason, ""), 0), code)
        << reason;
  }
}

TEST(ExitCodeTest, CoversFaultsOfConnection) {
  for (const FaultRule& rule : FaultRules()) {
    const int code = ExitCodeFor(StatusOf({.kind = rule.kind}), 0);
    EXPECT_EQ(code, rule.exit_code == 0 ? kExitCredentials : rule.exit_code) << rule.reason;
    EXPECT_NE(RemedyFor(static_cast<ExitCode>(code), "w-7"), "") << rule.reason;
  }
}

TEST(ExitCodeTest, WithoutAReasonTheCodeCounts) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus(), 0), 0);
  EXPECT_EQ(ExitCodeFor(absl::InternalError(""), 0), 1);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError(""), 0), 2);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError(""), 0), 2);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError(""), 0), 3);
  EXPECT_EQ(ExitCodeFor(absl::AbortedError(""), 0), 4);
  EXPECT_EQ(ExitCodeFor(absl::UnauthenticatedError(""), 0), 8);
}

TEST(ExitCodeTest, IgnoresTextOfStatus) {
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("round 3: diverged"), 0), 3);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("quarantined"), 0), 1);
}

TEST(ExitCodeTest, NamesEndOfQuarantine) {
  EXPECT_NE(RemedyFor(kExitQuarantined, "w-7").find("distroctl admit w-7"), std::string::npos);
  EXPECT_EQ(RemedyFor(kExitDone, "w-7"), "");
}

TEST(ExitCodeTest, FollowsSignal) {
  EXPECT_EQ(ExitCodeFor(absl::CancelledError(""), SIGINT), kExitInterrupted);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError(""), SIGTERM), kExitTerminated);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError(""), SIGHUP), kExitHungUp);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError(""), SIGXCPU), kExitCpuTime);
}

// The run may be done just before the signal is seen.
TEST(ExitCodeTest, IsZeroWhenDone) { EXPECT_EQ(ExitCodeFor(absl::OkStatus(), SIGTERM), 0); }

}  // namespace
}  // namespace distro::worker
