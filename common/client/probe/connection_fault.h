// The faults between a client and its aggregator, one word each: the same word in the log, the exit
// code and docs/troubleshooting.md. Pure; no sockets, no gRPC.
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
  kUnresolved,        // DNS does not know the name, or does not answer
  kUnreachable,       // refused, dropped, no route
  kTlsMismatch,       // one end speaks TLS, the other plaintext
  kOtherService,      // what listens there is no aggregator
  kUntrusted,         // the aggregator's certificate is of a CA that is not known here
  kNameMismatch,      // it is for another name
  kCertificateDates,  // it has ended or not begun, by this machine's clock
  kNoAnswer,          // a connection, and then silence or its end
  kOwnCertificate,    // the aggregator refuses this client's certificate
};

struct ConnectionFault {
  FaultKind kind = FaultKind::kNoAnswer;
  std::string what = {};    // what was seen, and at which address
  std::string remedy = {};  // what a person does about it
  // What was seen may not be what a call meets (a proxy that gRPC goes through): never at once.
  bool doubtful = false;
};

// How a kind is told to people and programs.
struct FaultRule {
  FaultKind kind;
  absl::string_view reason;   // of the status
  int exit_code;              // of distro-worker and distro-archiver; 0: that of the reason
  bool passes;                // an aggregator that is about to start looks the same: worth waiting
  absl::string_view summary;  // for --help
};

std::span<const FaultRule> FaultRules();
const FaultRule& RuleOf(FaultKind kind);

// Whether trying again cannot help.
bool IsFinal(const ConnectionFault& fault);

// "WHAT; REMEDY", with the kind's reason. Unavailable where it may pass, Unauthenticated for a
// client's certificate, otherwise InvalidArgument: a flag or a certificate must be fixed.
absl::Status StatusOf(const ConnectionFault& fault);

// The exit code of a status of StatusOf, or of one with the same reason; none: of another status.
std::optional<int> ConnectionExitCode(const absl::Status& status);

// Whether it is one of those.
bool IsConnectionExitCode(int code);

}  // namespace distro
