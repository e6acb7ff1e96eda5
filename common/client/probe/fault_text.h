// The message and the remedy of each fault, with the sentences of docs/troubleshooting.md. Pure:
// turns an observation into a ConnectionFault. `address` is the aggregator's, as given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/client/options/proxy.h"
#include "common/client/probe/connection_fault.h"
#include "common/client/probe/tls_stream.h"

namespace distro {

ConnectionFault Unresolved(absl::string_view address, absl::string_view host,
                           const absl::Status& why);
ConnectionFault Unreachable(absl::string_view address, const absl::Status& why);

// One side spoke TLS and the other plaintext.
ConnectionFault PlaintextServer(absl::string_view address);
ConnectionFault TlsServer(absl::string_view address);

ConnectionFault Http1Server(absl::string_view address);
// The server sent bytes of another protocol.
ConnectionFault UnknownServer(absl::string_view address, absl::string_view first_bytes);
// TLS without HTTP/2 inside; `alpn` is the protocol that the server chose.
ConnectionFault NoHttp2(absl::string_view address, absl::string_view alpn);
// HTTP/2, but no gRPC health service.
ConnectionFault NoAggregator(absl::string_view address);

// The connection was made, then silent or closed.
ConnectionFault NoAnswer(absl::string_view address, const absl::Status& why);
// No aggregator answers a call, which goes through the proxy. `direct`: what the probe found, which
// goes past it.
ConnectionFault NotThroughProxy(absl::string_view address, const Proxy& proxy,
                                const absl::Status& why,
                                const std::optional<ConnectionFault>& direct);

// What a certificate was checked against.
struct CertificateWishes {
  std::string ca_file;                // --ca; empty: the system's CAs
  std::vector<std::string> ca_names;  // the names of the CAs in ca_file
  std::string server_name;
  absl::Time now;
};
// For a handshake that this side refused. Names all faults; the remedy is that of the first.
ConnectionFault BadCertificate(absl::string_view address, const TlsHandshake& seen,
                               const CertificateWishes& wishes);

// The server ended TLS with an alert; `cert_file` is --cert and may be empty.
ConnectionFault RefusedByServer(absl::string_view address, absl::string_view cert_file,
                                absl::string_view alert);

}  // namespace distro
