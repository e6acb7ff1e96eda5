// Recognizes the protocol of a peer by the first bytes that it sends. They are untrusted input:
// only a few of them are looked at. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace distro {

enum class Greeting {
  kNothing,  // no byte, or too few to tell
  kTls,      // a record of TLS: a handshake or an alert
  kHttp1,    // a status line
  kHttp2,    // the SETTINGS frame with which every HTTP/2 connection begins
  kOther,
};

// Of at most the first kGreetingBytes that were received.
inline constexpr size_t kGreetingBytes = 64;
Greeting GreetingOf(absl::string_view first_bytes);

// The beginning of those bytes for a person: printable, 40 bytes at most.
std::string Excerpt(absl::string_view first_bytes);

// With what a client begins HTTP/2: the preface and empty SETTINGS (RFC 9113, 3.4).
absl::string_view Http2Preface();

}  // namespace distro
