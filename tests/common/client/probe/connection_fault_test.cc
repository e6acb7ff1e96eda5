#include "common/client/probe/connection_fault.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/reason.h"

namespace distro {
namespace {

TEST(ConnectionFaultTest, GivesKindsDistinctCodes) {
  std::set<std::string> reasons;
  std::set<int> codes;
  for (int i = 0; i <= static_cast<int>(FaultKind::kOwnCertificate); ++i) {
    const auto kind = static_cast<FaultKind>(i);
    const FaultRule& rule = RuleOf(kind);
    EXPECT_EQ(rule.kind, kind) << i;
    EXPECT_TRUE(reasons.insert(std::string(rule.reason)).second) << rule.reason;
    EXPECT_TRUE(codes.insert(rule.exit_code).second) << rule.reason;
    // Codes 0 to 10 and those of signals are taken in one program or the other.
    if (kind != FaultKind::kOwnCertificate) {
      EXPECT_GE(rule.exit_code, 11);
      EXPECT_LE(rule.exit_code, 18);
    }
  }
  EXPECT_EQ(FaultRules().size(), reasons.size());
}

TEST(ConnectionFaultTest, StatesRemedyAndExitCode) {
  const absl::Status status =
      StatusOf({.kind = FaultKind::kUntrusted, .what = "a:1: seen", .remedy = "fix it"});
  EXPECT_EQ(status.message(), "a:1: seen; fix it");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), "untrusted");
  EXPECT_EQ(ConnectionExitCode(status), 15);
}

TEST(ConnectionFaultTest, CallsPassingFaultsUnavailable) {
  for (const FaultRule& rule : FaultRules()) {
    const ConnectionFault fault = {.kind = rule.kind};
    EXPECT_EQ(IsFinal(fault), !absl::IsUnavailable(StatusOf(fault))) << rule.reason;
  }
  const auto is_final = [](FaultKind kind) { return !RuleOf(kind).passes; };
  EXPECT_FALSE(is_final(FaultKind::kUnresolved));
  EXPECT_FALSE(is_final(FaultKind::kUnreachable));
  EXPECT_FALSE(is_final(FaultKind::kNoAnswer));
  EXPECT_TRUE(is_final(FaultKind::kTlsMismatch));
}

TEST(ConnectionFaultTest, OtherStatusesHaveNoCodeHere) {
  EXPECT_EQ(ConnectionExitCode(absl::UnavailableError("unreachable")), std::nullopt);
  EXPECT_EQ(ConnectionExitCode(ErrorWithReason(absl::StatusCode::kAborted, "replaced", "")),
            std::nullopt);
  // Who is refused ends with the code that refusals by the aggregator have.
  EXPECT_EQ(ConnectionExitCode(StatusOf({.kind = FaultKind::kOwnCertificate})), std::nullopt);
}

}  // namespace
}  // namespace distro
