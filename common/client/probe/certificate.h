// Describes a server's certificate for people. The certificate is untrusted input: the text is
// bounded and has no control characters.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

struct CertificateFacts {
  std::string subject;             // CN, or all of the name where it has none
  std::string issuer;              // the same of who signed it
  std::vector<std::string> names;  // hosts and IP addresses it is for, 16 at most
  absl::Time not_before = absl::InfinitePast();
  absl::Time not_after = absl::InfinitePast();
};

CertificateFacts FactsOf(const X509* certificate);

// Of a subject or an issuer: its CN, or all of it.
std::string NameText(const X509_NAME* name);

// "2026-11-24 03:14 UTC".
std::string DateText(absl::Time time);

}  // namespace distro
