#include "common/client/status_action.h"

#include <gtest/gtest.h>

#include "common/base/reason.h"

namespace distro {
namespace {

absl::Status With(const char* reason) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason, "");
}

TEST(VerdictTest, GoesByTheReasonWhateverTheCode) {
  for (const char* reason :
       {"damaged", "draining", "disk", "fenced", "full", "limit", "not_open", "paused", "stalled"})
    EXPECT_EQ(VerdictOf(With(reason)), Verdict::kRetry) << reason;
  for (const char* reason : {"diverged", "pruned"})
    EXPECT_EQ(VerdictOf(With(reason)), Verdict::kResync) << reason;
  for (const char* reason : {"other_data", "other_run", "quarantined", "replaced", "role",
                             "too_slow", "unauthenticated", "version", "wrong_name"})
    EXPECT_EQ(VerdictOf(With(reason)), Verdict::kEnd) << reason;
  for (const char* reason : {"no_session", "late", "wrong_round", "wrong_epoch", "no_samples"})
    EXPECT_EQ(VerdictOf(With(reason)), Verdict::kRejoin) << reason;
  EXPECT_EQ(VerdictOf(ErrorWithReason(absl::StatusCode::kResourceExhausted, "too_slow", "")),
            Verdict::kEnd);
}

TEST(VerdictTest, WithoutAReasonGoesByTheCode) {
  EXPECT_EQ(VerdictOf(absl::UnavailableError("diverged")), Verdict::kRetry);
  EXPECT_EQ(VerdictOf(absl::ResourceExhaustedError("")), Verdict::kRetry);
  EXPECT_EQ(VerdictOf(absl::FailedPreconditionError("")), Verdict::kRejoin);
  EXPECT_EQ(VerdictOf(absl::AbortedError("")), Verdict::kEnd);
  EXPECT_EQ(VerdictOf(absl::PermissionDeniedError("")), Verdict::kEnd);
  EXPECT_EQ(VerdictOf(absl::InvalidArgumentError("")), Verdict::kEnd);
}

}  // namespace
}  // namespace distro
