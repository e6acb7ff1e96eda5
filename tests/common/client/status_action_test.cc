#include "common/client/status_action.h"

#include <gtest/gtest.h>

#include "common/base/reason.h"

namespace distro {
namespace {

absl::Status With(const char* reason) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason, "");
}

TEST(StatusActionTest, GoesByTheReasonWhateverTheCode) {
  for (const char* reason : {"damaged", "draining", "disk", "fenced", "full", "limit",
                             "no_reference", "not_open", "paused", "stalled"})
    EXPECT_EQ(ActionFor(With(reason)), StatusAction::kRetry) << reason;
  for (const char* reason : {"diverged", "pruned"})
    EXPECT_EQ(ActionFor(With(reason)), StatusAction::kResync) << reason;
  for (const char* reason : {"other_data", "other_run", "quarantined", "replaced", "role",
                             "too_slow", "unauthenticated", "version", "wrong_name"})
    EXPECT_EQ(ActionFor(With(reason)), StatusAction::kEnd) << reason;
  for (const char* reason : {"no_session", "late", "wrong_round", "wrong_epoch", "no_samples"})
    EXPECT_EQ(ActionFor(With(reason)), StatusAction::kRejoin) << reason;
  EXPECT_EQ(ActionFor(ErrorWithReason(absl::StatusCode::kResourceExhausted, "too_slow", "")),
            StatusAction::kEnd);
}

TEST(StatusActionTest, WithoutAReasonGoesByTheCode) {
  EXPECT_EQ(ActionFor(absl::UnavailableError("diverged")), StatusAction::kRetry);
  for (const absl::StatusCode code :
       {absl::StatusCode::kAborted, absl::StatusCode::kCancelled,
        absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kInternal,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnknown})
    EXPECT_EQ(ActionFor(absl::Status(code, "")), StatusAction::kRetry) << code;
  EXPECT_EQ(ActionFor(absl::FailedPreconditionError("")), StatusAction::kRejoin);
  for (const absl::StatusCode code :
       {absl::StatusCode::kAlreadyExists, absl::StatusCode::kDataLoss,
        absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
        absl::StatusCode::kOutOfRange, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kUnauthenticated, absl::StatusCode::kUnimplemented})
    EXPECT_EQ(ActionFor(absl::Status(code, "")), StatusAction::kEnd) << code;
}

}  // namespace
}  // namespace distro
