// Recognizes the protocol of a peer by the first bytes that it sends. They are untrusted input;
// only the first few are read. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace distro {

enum class Greeting {
  kNothing,  // no bytes, or too few to tell
  kTls,      // a TLS record: a handshake or an alert
  kHttp1,    // a status line
  kHttp2,    // the SETTINGS frame that begins every HTTP/2 connection
  kOther,
};

// Uses at most the first kGreetingBytes received.
inline constexpr size_t kGreetingBytes = 64;
Greeting GreetingOf(absl::string_view first_bytes);

// The start of those bytes, printable, at most 40 bytes, for people.
std::string Excerpt(absl::string_view first_bytes);

// The bytes with which a client begins HTTP/2: the preface and empty SETTINGS (RFC 9113, 3.4).
absl::string_view Http2Preface();

}  // namespace distro
