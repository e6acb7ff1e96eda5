// Where a bucket is, and who may use it: the URL of a flag, and what else the environment says, by
// the variables and files of AWS's own tools
// (https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html). Blocking.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/http/http_url.h"
#include "common/net/s3/signature.h"

namespace distro {

struct S3Place {
  // The server; its path ends with the bucket, or the bucket is in the host's name.
  HttpUrl server;
  std::string region;
  std::string prefix;  // "" or "a/b/": what all keys begin with
  std::string url;     // "s3://bucket/a/b", for messages
};

// The value of an environment variable; nullopt or empty: not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment ProcessEnvironment();

// "s3://BUCKET[/PREFIX]". The server is AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, with the bucket in
// the path; without them that of AWS for the region: AWS_REGION, AWS_DEFAULT_REGION, the profile's
// in AWS_CONFIG_FILE (~/.aws/config), or us-east-1. InvalidArgument: not such a URL, or a name with
// other characters than letters, digits, "-", "." and "_"; the message names the variable or file.
absl::StatusOr<S3Place> FindS3Place(absl::string_view url, const Environment& environment);

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; without them the profile
// AWS_PROFILE (default) of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). InvalidArgument: there
// are none; the message says where they were looked for.
absl::StatusOr<S3Credentials> FindS3Credentials(const Environment& environment);

}  // namespace distro
