#include "common/base/reason.h"

#include "common/base/status_util.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(ReasonTest, IsEmptyUnlessGiven) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), "");
  EXPECT_EQ(ReasonOf(absl::InternalError("x")), "");
  EXPECT_EQ(ReasonOf(ErrorWithReason(absl::StatusCode::kAborted, "replaced", "x")), "replaced");
}

TEST(ReasonTest, SurvivesAnnotation) {
  const absl::Status status = WithRetryAfter(
      ErrorWithReason(absl::StatusCode::kUnavailable, "draining", "stops"), absl::Seconds(3));
  const absl::Status annotated = Annotate(status, "join");
  EXPECT_EQ(annotated.message(), "join: stops");
  EXPECT_EQ(ReasonOf(annotated), "draining");
  EXPECT_EQ(RetryAfterOf(annotated), absl::Seconds(3));
}

TEST(ReasonTest, RetryHintIsUnsetUnlessGiven) {
  EXPECT_EQ(RetryAfterOf(absl::UnavailableError("x")), std::nullopt);
}

}  // namespace
}  // namespace distro
