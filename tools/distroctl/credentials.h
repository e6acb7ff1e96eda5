// `distroctl certs`, `token new` and `token revoke`: what shows an aggregator and its peers who is
// who (docs/security.md).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct CertsOptions {
  std::string out;                   // folder to write. Required.
  std::vector<std::string> hosts;    // names and addresses of the aggregator. At least one.
  std::vector<std::string> workers;  // names of workers that get a client certificate
};

// Writes ca.pem, server.pem, admin.pem and worker-NAME.pem, each with its -key.pem of mode 0600; a
// CA that is there goes on, and so later calls add workers or renew. Returns the files, several
// lines. InvalidArgument: an option, or the CA that is there.
absl::StatusOr<Report> MakeCerts(const CertsOptions& options, absl::Time now);

Command CertsCommand(const Console* console);

// A new token, and its line for the tokens file: "token TOKEN\nline NAME ROLE HASH". It is kept
// nowhere. InvalidArgument: the name or the role.
absl::StatusOr<Report> MakeToken(const std::string& name, const std::string& role);

// Drops all tokens of a name from a tokens file, which keeps its mode. InvalidArgument: no file is
// named, or it is damaged. NotFound: the name has none, or there is no file.
absl::StatusOr<Report> RevokeTokens(const std::string& name, const std::string& tokens_file);

Command TokenNewCommand(const Console* console);
Command TokenRevokeCommand(const Console* console);

}  // namespace distro::tools
