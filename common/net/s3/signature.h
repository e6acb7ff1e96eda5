// Signs a request to S3: AWS Signature Version 4 with the Authorization header
// (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html). Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/http/http_client.h"

namespace distro {

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token = {};  // empty: none
};

// Each byte but letters, digits, "-", ".", "_" and "~" as %XX.
std::string UriEncode(absl::string_view text);

struct S3Request {
  absl::string_view method = {};
  absl::string_view host = {};  // as the Host header has it
  absl::string_view path = {};  // encoded
  // Neither encoded nor ordered.
  std::vector<std::pair<std::string, std::string>> query = {};
  HttpHeaders headers = {};               // besides Host and those that Sign adds
  absl::string_view content_sha256 = {};  // in lower-case hexadecimal
};

// "a=1&b=": encoded and in the order of names, as the signature demands.
std::string EncodedQuery(const S3Request& request);

// The headers to send: those of the request, x-amz-date, x-amz-content-sha256, the session's token,
// and Authorization, which covers them and the host.
HttpHeaders Sign(const S3Request& request, const S3Credentials& credentials,
                 absl::string_view region, absl::Time now);

}  // namespace distro
