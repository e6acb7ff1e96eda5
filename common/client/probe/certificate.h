// Describes a server's certificate for people. The certificate is untrusted input: texts are
// bounded and contain no control characters.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

struct CertificateFacts {
  std::string subject;             // CN, or the whole name if it has none
  std::string issuer;              // the same of the issuer
  std::vector<std::string> names;  // hosts and IP addresses, 16 at most
  absl::Time not_before = absl::InfinitePast();
  absl::Time not_after = absl::InfinitePast();
};

CertificateFacts FactsOf(const X509* certificate);

// The CN of a subject or an issuer, or the whole name if it has none.
std::string NameText(const X509_NAME* name);

}  // namespace distro
