// `distroctl certs`: a development CA and the certificates that it issues (docs/security.md).
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

}  // namespace distro::tools
