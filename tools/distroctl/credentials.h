// `distroctl certs`, `token new` and `token revoke`: make and revoke the credentials of an
// aggregator and its peers (docs/security.md).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct CertsOptions {
  std::string out;                   // folder to write. Required.
  std::vector<std::string> hosts;    // names and addresses of the aggregator. At least one.
  std::vector<std::string> workers;  // names of workers that get a client certificate
};

// Writes ca.pem, server.pem, admin.pem and worker-NAME.pem, each with its -key.pem of mode 0600.
// Uses an existing CA, so later calls can add workers or renew certificates. Returns the files, one
// per line. InvalidArgument: an option, or the existing CA.
absl::StatusOr<Report> MakeCerts(const CertsOptions& options, absl::Time now);

Command CertsCommand(const Console* console);

// Makes a token, and its line for the tokens file: "token TOKEN\nline NAME ROLE HASH". Stores
// neither. InvalidArgument: the name or the role.
absl::StatusOr<Report> MakeToken(const std::string& name, const std::string& role);

// Removes all tokens of a name from a tokens file, whose mode stays. InvalidArgument: no file was
// given, or it is damaged. NotFound: the name has no token, or there is no file.
absl::StatusOr<Report> RevokeTokens(const std::string& name, const std::string& tokens_file);

Command TokenNewCommand(const Console* console);
Command TokenRevokeCommand(const Console* console);

}  // namespace distro::tools
