#include "common/base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace distro {
namespace {

constexpr size_t kNetworkBytes = 8;  // of an IPv6 address

std::string Text(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  return inet_ntop(family, address, text.data(), text.size()) == nullptr ? "" : text.data();
}

Peer PeerOfV4(const in_addr& address, in_port_t port) {
  const std::string text = Text(AF_INET, &address);
  return {.endpoint = absl::StrCat(text, ":", ntohs(port)), .address = text};
}

Peer PeerOfV6(const sockaddr_in6& from) {
  if (IN6_IS_ADDR_V4MAPPED(&from.sin6_addr)) {
    in_addr inner;
    std::memcpy(&inner, from.sin6_addr.s6_addr + 12, sizeof(inner));
    return PeerOfV4(inner, from.sin6_port);
  }
  in6_addr network = from.sin6_addr;
  std::memset(network.s6_addr + kNetworkBytes, 0, sizeof(network.s6_addr) - kNetworkBytes);
  return {
      .endpoint = absl::StrCat("[", Text(AF_INET6, &from.sin6_addr), "]:", ntohs(from.sin6_port)),
      .address = absl::StrCat(Text(AF_INET6, &network), "/64")};
}

}  // namespace

Peer PeerOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    return PeerOfV4(v4.sin_addr, v4.sin_port);
  }
  if (address.ss_family != AF_INET6) return {};
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof(v6));
  return PeerOfV6(v6);
}

std::string EndpointOfGrpcPeer(absl::string_view uri) {
  if (absl::ConsumePrefix(&uri, "ipv4:")) return std::string(uri);
  if (!absl::ConsumePrefix(&uri, "ipv6:")) return "";
  std::string endpoint = absl::StrReplaceAll(uri, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  const size_t scope = endpoint.find('%');
  const size_t end = endpoint.find(']');
  if (scope != std::string::npos && end != std::string::npos && scope < end)
    endpoint.erase(scope, end - scope);
  return endpoint;
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  const auto bad = [text](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": ", why, " (expected host:port)"));
  };
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return bad("no host or no port");
  absl::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (absl::StrContains(host, ":")) {
    return bad("IPv6 without brackets");
  }
  uint32_t port = 0;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535)
    return bad("the port is outside 0..65535");
  return HostPort{.host = std::string(host), .port = static_cast<int>(port)};
}

std::string JoinHostPort(absl::string_view host, int port) {
  const bool v6 = absl::StrContains(host, ":");
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", port);
}

}  // namespace distro
