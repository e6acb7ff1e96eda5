// The faults of the connection between a client and its aggregator. Each has one word, which the
// log, the exit code and docs/troubleshooting.md use. Pure; no sockets, no gRPC.
//
//   if (look.fault) return StatusOf(*look.fault);
//   ...
//   if (const auto code = ConnectionExitCode(status)) return *code;
#pragma once

#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro {

enum class FaultKind {
  kUnresolved,        // DNS does not know the name or does not answer
  kUnreachable,       // refused, dropped, no route
  kTlsMismatch,       // one end speaks TLS, the other plaintext
  kOtherService,      // the server there is not an aggregator
  kUntrusted,         // the aggregator's certificate is from an unknown CA
  kNameMismatch,      // the certificate is for another name
  kCertificateDates,  // the certificate has expired or is not valid yet, by this machine's clock
  kNoAnswer,          // connected, then silence or a closed connection
  kOwnCertificate,    // the aggregator refuses this client's certificate
};

struct ConnectionFault {
  FaultKind kind = FaultKind::kNoAnswer;
  std::string what = {};    // the observation, with the address
  std::string remedy = {};  // how to fix it
};

// How a kind is presented to people and programs.
struct FaultRule {
  FaultKind kind;
  absl::string_view reason;   // of the status
  int exit_code;              // of distro-worker and distro-archiver; 0: the reason's
  bool passes;                // worth waiting: a starting aggregator looks the same
  absl::string_view summary;  // for --help
};

std::span<const FaultRule> FaultRules();
const FaultRule& RuleOf(FaultKind kind);

// Whether another attempt cannot help.
bool IsFinal(const ConnectionFault& fault);

// "WHAT; REMEDY", with the kind's reason. Unavailable if it may pass, Unauthenticated for a
// client's certificate, otherwise InvalidArgument: a flag or a certificate must be fixed.
absl::Status StatusOf(const ConnectionFault& fault);

// The exit code for a status from StatusOf or with the same reason; nullopt for other statuses.
std::optional<int> ConnectionExitCode(const absl::Status& status);

// Whether `code` is one of these exit codes.
bool IsConnectionExitCode(int code);

}  // namespace distro
