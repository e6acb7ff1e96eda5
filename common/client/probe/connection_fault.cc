#include "common/client/probe/connection_fault.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro {
namespace {

// In the order of FaultKind.
constexpr FaultRule kRules[] = {
    {FaultKind::kUnresolved, "unresolved", 11, true, "the aggregator's name does not resolve"},
    {FaultKind::kUnreachable, "unreachable", 12, true,
     "no connection to the aggregator: refused, dropped, no route"},
    {FaultKind::kTlsMismatch, "tls_mismatch", 13, false,
     "plaintext against TLS, or TLS against plaintext"},
    {FaultKind::kOtherService, "other_service", 14, false,
     "the server at the address is not an aggregator, but for example its metrics port"},
    {FaultKind::kUntrusted, "untrusted", 15, false,
     "the aggregator's certificate is from a CA that is not in --ca"},
    {FaultKind::kNameMismatch, "name_mismatch", 16, false,
     "the aggregator's certificate is for another name"},
    {FaultKind::kCertificateDates, "certificate_dates", 17, false,
     "the aggregator's certificate has expired or is not valid yet, or this clock is wrong"},
    {FaultKind::kNoAnswer, "no_answer", 18, true,
     "the aggregator's port accepts connections but does not answer"},
    {FaultKind::kOwnCertificate, "unauthenticated", 0, false, "credentials refused"},
};

}  // namespace

std::span<const FaultRule> FaultRules() { return kRules; }

const FaultRule& RuleOf(FaultKind kind) { return kRules[static_cast<size_t>(kind)]; }

bool IsFinal(const ConnectionFault& fault) { return !RuleOf(fault.kind).passes; }

absl::Status StatusOf(const ConnectionFault& fault) {
  const FaultRule& rule = RuleOf(fault.kind);
  const absl::StatusCode code = rule.passes ? absl::StatusCode::kUnavailable
                                : fault.kind == FaultKind::kOwnCertificate
                                    ? absl::StatusCode::kUnauthenticated
                                    : absl::StatusCode::kInvalidArgument;
  return ErrorWithReason(code, rule.reason, absl::StrCat(fault.what, "; ", fault.remedy));
}

std::optional<int> ConnectionExitCode(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  for (const FaultRule& rule : kRules) {
    if (rule.exit_code != 0 && rule.reason == reason) return rule.exit_code;
  }
  return std::nullopt;
}

bool IsConnectionExitCode(int code) {
  return code != 0 && std::ranges::any_of(
                          kRules, [code](const FaultRule& rule) { return rule.exit_code == code; });
}

}  // namespace distro
