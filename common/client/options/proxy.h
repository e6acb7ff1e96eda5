// Whether calls of an aggregator go through an HTTP proxy. gRPC would read the variables itself,
// but takes fewer forms of proxies, and of the exceptions only lower-case no_proxy and the ends of
// names; here NO_PROXY, networks and "*" count as well, as in other programs. The channel and the
// probe ask here, so that both say the same (docs/troubleshooting.md).
//
// Thread-safe as long as no thread changes the environment.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

struct Proxy {
  std::string variable;  // that names it: "https_proxy"
  std::string url;       // without credentials, for messages
  std::string uri;       // for gRPC: with credentials and scheme
};

// The proxy for `host`, a name or an address without brackets: of the first of grpc_proxy,
// https_proxy and http_proxy that is set. nullopt: none, or an exception has the host (the first of
// no_grpc_proxy, no_proxy and NO_PROXY that is not empty). Without a scheme it is http, as other
// programs take it. InvalidArgument: another scheme, or an @ in its user or password, either of
// which gRPC would ignore.
absl::StatusOr<std::optional<Proxy>> ProxyFor(const std::string& host);

// Whether a list of exceptions has the host: "*", a name or its end (".example.com",
// "*.example.com"), an address, or a network ("10.0.0.0/8"), each with a port or without.
bool IsException(absl::string_view host, absl::string_view exceptions);

}  // namespace distro
