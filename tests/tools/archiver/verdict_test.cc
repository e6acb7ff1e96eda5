#include "tools/archiver/verdict.h"

#include "common/base/reason.h"
#include "gtest/gtest.h"
#include "tools/archiver/exit_code.h"

namespace distro::tools {
namespace {

using absl::StatusCode;

absl::Status Refused(StatusCode code, absl::string_view reason) {
  return reason.empty() ? absl::Status(code, "x") : ErrorWithReason(code, reason, "x");
}

struct Case {
  StatusCode code;
  const char* reason;
  Verdict verdict;
  ArchiverExitCode exit_code;  // when it ends the process
};

constexpr Case kCases[] = {
    {StatusCode::kUnavailable, "", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kDeadlineExceeded, "", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kCancelled, "", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kInternal, "", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kUnavailable, "draining", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kFailedPrecondition, "fenced", Verdict::kRetry, kArchiverRefused},
    {StatusCode::kResourceExhausted, "disk", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kResourceExhausted, "limit", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kUnavailable, "limit", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kUnavailable, "disk", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kDataLoss, "damaged", Verdict::kRetry, kArchiverFailed},
    {StatusCode::kFailedPrecondition, "no_reference", Verdict::kRetry, kArchiverRefused},
    {StatusCode::kFailedPrecondition, "diverged", Verdict::kNewSnapshot, kArchiverDiverged},
    {StatusCode::kOutOfRange, "pruned", Verdict::kNewSnapshot, kArchiverDiverged},
    {StatusCode::kFailedPrecondition, "other_run", Verdict::kEnd, kArchiverRefused},
    {StatusCode::kFailedPrecondition, "", Verdict::kEnd, kArchiverRefused},
    {StatusCode::kInvalidArgument, "", Verdict::kEnd, kArchiverUsage},
    {StatusCode::kUnauthenticated, "unauthenticated", Verdict::kEnd, kArchiverCredentials},
    {StatusCode::kPermissionDenied, "role", Verdict::kEnd, kArchiverCredentials},
    {StatusCode::kUnimplemented, "", Verdict::kEnd, kArchiverFailed},
    {StatusCode::kDataLoss, "", Verdict::kEnd, kArchiverFailed},
};

TEST(VerdictTest, FollowsTheReasonThenTheCode) {
  for (const Case& c : kCases) {
    const absl::Status status = Refused(c.code, c.reason);
    EXPECT_EQ(VerdictOf(status), c.verdict) << status;
    EXPECT_EQ(ArchiverExitCodeFor(status), c.exit_code) << status;
  }
  EXPECT_EQ(ArchiverExitCodeFor(absl::OkStatus()), kArchiverDone);
}

}  // namespace
}  // namespace distro::tools
