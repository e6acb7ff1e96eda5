// The message and the remedy of each fault between a client and its aggregator: the sentences of
// docs/troubleshooting.md. Pure: from an observation to a ConnectionFault. `address` is the
// aggregator's, as it was given.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/client/probe/connection_fault.h"
#include "common/client/probe/tls_stream.h"

namespace distro {

ConnectionFault Unresolved(absl::string_view address, absl::string_view host,
                           const absl::Status& why);
ConnectionFault Unreachable(absl::string_view address, const absl::Status& why);

// TLS was spoken, and the server speaks plaintext; and the other way about.
ConnectionFault PlaintextServer(absl::string_view address);
ConnectionFault TlsServer(absl::string_view address);

ConnectionFault Http1Server(absl::string_view address);
// It answered with bytes of something else.
ConnectionFault UnknownServer(absl::string_view address, absl::string_view first_bytes);
// TLS without HTTP/2 inside; `alpn` is what the server chose.
ConnectionFault NoHttp2(absl::string_view address, absl::string_view alpn);
// HTTP/2, and no health service behind it.
ConnectionFault NoAggregator(absl::string_view address);

// A connection, and then nothing, or its end.
ConnectionFault NoAnswer(absl::string_view address, const absl::Status& why);

// What a certificate was judged by.
struct CertificateWishes {
  std::string ca_file;                // --ca; empty: the system's CAs
  std::vector<std::string> ca_names;  // in it
  std::string server_name;
  absl::Time now;
};
// Of a handshake that was refused by us. All its faults are named, the remedy is that of the first.
ConnectionFault BadCertificate(absl::string_view address, const TlsHandshake& seen,
                               const CertificateWishes& wishes);

// The server ended TLS with an alert; `cert_file` is --cert, which may be empty.
ConnectionFault RefusedByServer(absl::string_view address, absl::string_view cert_file,
                                absl::string_view alert);

}  // namespace distro
