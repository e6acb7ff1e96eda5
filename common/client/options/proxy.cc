#include "common/client/options/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace distro {
namespace {

// Bytes of an address; 4 of IPv4, 16 of IPv6, none of a name.
std::string AddressBytes(absl::string_view text) {
  std::array<char, sizeof(in6_addr)> bytes = {};
  const std::string copy(text);
  if (inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) return {bytes.data(), sizeof(in_addr)};
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) return {bytes.data(), bytes.size()};
  return "";
}

bool IsInNetwork(absl::string_view host, absl::string_view network) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(network, '/');
  const std::string address = AddressBytes(host), base = AddressBytes(parts.first);
  size_t bits = 0;
  if (address.empty() || address.size() != base.size() || !absl::SimpleAtoi(parts.second, &bits) ||
      bits > 8 * base.size()) {
    return false;
  }
  for (size_t bit = 0; bit < bits; ++bit) {
    const int mask = 0x80 >> (bit % 8);
    if ((address[bit / 8] & mask) != (base[bit / 8] & mask)) return false;
  }
  return true;
}

// The entry without brackets, port, and the star of "*.example.com".
absl::string_view HostOfEntry(absl::string_view entry) {
  absl::ConsumePrefix(&entry, "*");
  if (absl::ConsumePrefix(&entry, "[")) return entry.substr(0, entry.find(']'));
  const size_t colon = entry.find(':');
  return colon == entry.rfind(':') ? entry.substr(0, colon) : entry;  // two colons: IPv6
}

// gRPC takes the end of a name as it is; other programs take a domain with its subdomains. Both
// count.
bool Matches(absl::string_view host, absl::string_view entry) {
  if (entry == "*") return true;
  if (absl::StrContains(entry, "/")) return IsInNetwork(host, entry);
  const absl::string_view name = HostOfEntry(entry);
  if (name.empty()) return false;
  const std::string address = AddressBytes(name);
  if (!address.empty() && address == AddressBytes(host)) return true;
  return absl::EndsWithIgnoreCase(host, name) ||
         absl::EqualsIgnoreCase(host, absl::StripPrefix(name, "."));
}

std::string WithoutCredentials(absl::string_view url) {
  const size_t scheme = url.find("://"), at = url.rfind('@');
  if (at == absl::string_view::npos) return std::string(url);
  const size_t begin = scheme == absl::string_view::npos ? 0 : scheme + 3;
  return absl::StrCat(url.substr(0, begin), url.substr(std::max(at + 1, begin)));
}

// As gRPC takes it: it would ignore another scheme, capitals in the scheme, and a second "@".
absl::StatusOr<std::optional<Proxy>> ParseProxy(absl::string_view variable, absl::string_view url) {
  const size_t scheme = url.find("://");
  const absl::string_view rest = scheme == absl::string_view::npos ? url : url.substr(scheme + 3);
  const std::string shown = WithoutCredentials(url);
  if (rest.size() != url.size() && !absl::EqualsIgnoreCase(url.substr(0, scheme), "http")) {
    return absl::InvalidArgumentError(
        absl::StrCat(variable, ": ", shown,
                     ": calls go through a proxy of the scheme http only; write "
                     "http://HOST:PORT, or add the aggregator's host to no_proxy"));
  }
  const absl::string_view authority = rest.substr(0, rest.find('/'));
  if (std::ranges::count(absl::StrReplaceAll(authority, {{"%40", "@"}}), '@') > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(variable, ": ", shown,
                     ": its user or password contains @, which calls cannot "
                     "pass on; add the aggregator's host to no_proxy, or use another password"));
  }
  return Proxy{
      .variable = std::string(variable), .url = shown, .uri = absl::StrCat("http://", rest)};
}

std::string Exceptions() {
  for (const char* variable : {"no_grpc_proxy", "no_proxy", "NO_PROXY"}) {
    const char* const hosts = std::getenv(variable);
    if (hosts != nullptr && *hosts != '\0') return hosts;
  }
  return "";
}

}  // namespace

bool IsException(absl::string_view host, absl::string_view exceptions) {
  for (const absl::string_view entry :
       absl::StrSplit(exceptions, absl::ByAnyChar(", \t"), absl::SkipEmpty())) {
    if (Matches(host, entry)) return true;
  }
  return false;
}

absl::StatusOr<std::optional<Proxy>> ProxyFor(const std::string& host) {
  for (const char* variable : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const char* const url = std::getenv(variable);
    if (url == nullptr) continue;
    if (*url == '\0' || IsException(host, Exceptions())) return std::nullopt;
    return ParseProxy(variable, url);
  }
  return std::nullopt;
}

}  // namespace distro
