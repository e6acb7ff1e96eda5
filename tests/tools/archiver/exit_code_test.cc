#include "tools/archiver/exit_code.h"

#include <gtest/gtest.h>

#include "common/base/reason.h"
#include "common/client/probe/connection_fault.h"

namespace distro::tools {
namespace {

using absl::StatusCode;

absl::Status Refused(StatusCode code, absl::string_view reason) {
  return reason.empty() ? absl::Status(code, "x") : ErrorWithReason(code, reason, "x");
}

struct Case {
  StatusCode code;
  const char* reason;
  ArchiverExitCode exit_code;
};

constexpr Case kCases[] = {
    {StatusCode::kUnavailable, "", kArchiverFailed},
    {StatusCode::kDeadlineExceeded, "", kArchiverFailed},
    {StatusCode::kCancelled, "", kArchiverFailed},
    {StatusCode::kInternal, "", kArchiverFailed},
    {StatusCode::kUnavailable, "draining", kArchiverFailed},
    {StatusCode::kFailedPrecondition, "fenced", kArchiverRefused},
    {StatusCode::kResourceExhausted, "disk", kArchiverFailed},
    {StatusCode::kResourceExhausted, "limit", kArchiverFailed},
    {StatusCode::kUnavailable, "limit", kArchiverFailed},
    {StatusCode::kUnavailable, "disk", kArchiverFailed},
    {StatusCode::kDataLoss, "damaged", kArchiverFailed},
    {StatusCode::kFailedPrecondition, "no_reference", kArchiverRefused},
    {StatusCode::kFailedPrecondition, "diverged", kArchiverDiverged},
    {StatusCode::kOutOfRange, "pruned", kArchiverDiverged},
    {StatusCode::kFailedPrecondition, "other_run", kArchiverRefused},
    {StatusCode::kFailedPrecondition, "version", kArchiverVersion},
    {StatusCode::kFailedPrecondition, "", kArchiverRefused},
    {StatusCode::kInvalidArgument, "", kArchiverUsage},
    {StatusCode::kUnauthenticated, "unauthenticated", kArchiverCredentials},
    {StatusCode::kPermissionDenied, "role", kArchiverCredentials},
    {StatusCode::kUnimplemented, "", kArchiverFailed},
    {StatusCode::kDataLoss, "", kArchiverFailed},
};

TEST(ExitCodeTest, FollowsTheReasonThenTheCode) {
  for (const Case& c : kCases) {
    const absl::Status status = Refused(c.code, c.reason);
    EXPECT_EQ(ArchiverExitCodeFor(status), c.exit_code) << status;
  }
  EXPECT_EQ(ArchiverExitCodeFor(absl::OkStatus()), kArchiverDone);
}

TEST(ExitCodeTest, CoversFaultsOfConnection) {
  for (const FaultRule& rule : FaultRules()) {
    const ArchiverExitCode code = ArchiverExitCodeFor(StatusOf({.kind = rule.kind}));
    EXPECT_EQ(static_cast<int>(code),
              rule.exit_code == 0 ? static_cast<int>(kArchiverCredentials) : rule.exit_code)
        << rule.reason;
    EXPECT_NE(ArchiverRemedyFor(code), "") << rule.reason;
  }
}

}  // namespace
}  // namespace distro::tools
