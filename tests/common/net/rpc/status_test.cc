#include "common/net/rpc/status.h"

#include <string>

#include "common/base/reason.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(StatusTest, RoundTrips) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "round 42: too late");
    EXPECT_EQ(ToGrpcStatus(status).error_code(), code);
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(StatusTest, UnknownCodesBecomeUnknown) {
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::DO_NOT_USE, "x")).code(),
            absl::StatusCode::kUnknown);
}

TEST(StatusTest, LongMessagesAreCutBetweenCharacters) {
  std::string message(kMaxStatusMessageBytes - 1, 'x');
  message += "\u00e9\u00e9\u00e9";
  const grpc::Status status = ToGrpcStatus(absl::InternalError(message));
  EXPECT_EQ(status.error_message(), message.substr(0, kMaxStatusMessageBytes - 1));
}

TEST(StatusTest, EscapesPeersMessage) {
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "a\n\u202eb\x1b[2J")),
            absl::AbortedError("a\\n\\u202eb\\x1b[2J"));
}

TEST(StatusTest, ReasonAndRetryHintTravel) {
  const absl::Status status =
      WithRetryAfter(ErrorWithReason(absl::StatusCode::kUnavailable, "draining", "stops"),
                     absl::Milliseconds(1500));
  const absl::Status back = FromGrpcStatus(ToGrpcStatus(status));
  EXPECT_EQ(ReasonOf(back), "draining");
  EXPECT_EQ(RetryAfterOf(back), absl::Milliseconds(1500));
}

TEST(StatusTest, DetailsThatNobodyOfUsWroteAreDropped) {
  for (const std::string& reason : {std::string("Not a word"), std::string(65, 'x')}) {
    const absl::Status status = ErrorWithReason(absl::StatusCode::kUnavailable, reason, "stops");
    EXPECT_EQ(ReasonOf(FromGrpcStatus(ToGrpcStatus(status))), "");
  }
  const grpc::Status noise(grpc::StatusCode::UNAVAILABLE, "stops", "\xff\xff\xff");
  EXPECT_EQ(FromGrpcStatus(noise), absl::UnavailableError("stops"));
}

}  // namespace
}  // namespace distro
