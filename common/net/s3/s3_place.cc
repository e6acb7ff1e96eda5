#include "common/net/s3/s3_place.h"

#include <cstdlib>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "boost/property_tree/ini_parser.hpp"
#include "boost/property_tree/ptree.hpp"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

namespace distro {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;

using Settings = boost::property_tree::ptree;

std::string Or(const std::optional<std::string>& value, absl::string_view otherwise) {
  return value && !value->empty() ? *value : std::string(otherwise);
}

std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const std::string value = Or(environment(name), ""); !value.empty()) return value;
  }
  return "";
}

std::string ProfileOf(const Environment& environment) {
  return Or(environment("AWS_PROFILE"), "default");
}

std::string PathOf(const Environment& environment, const char* variable, absl::string_view file) {
  return Or(environment(variable), absl::StrCat(Or(environment("HOME"), ""), "/.aws/", file));
}

// The settings under [section]; none without the file or the section.
absl::StatusOr<Settings> ReadSection(const std::string& path, const std::string& section) {
  const absl::StatusOr<std::string> text = ReadTextFile(path, kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return Settings();
  DISTRO_RETURN_IF_ERROR(text.status());
  std::istringstream stream(*text);
  Settings file;
  try {
    boost::property_tree::read_ini(stream, file);
  } catch (const boost::property_tree::ini_parser_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": line ", error.line(), ": ", error.message()));
  }
  const auto found = file.find(section);
  return found == file.not_found() ? Settings() : found->second;
}

std::string SettingOf(const Settings& section, const char* name) {
  const auto found = section.find(name);
  return found == section.not_found() ? "" : found->second.data();
}

bool IsPlainName(absl::string_view name) {
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '_')
      return false;
  }
  return !name.empty() && name != "." && name != "..";
}

bool IsPlainPrefix(absl::string_view prefix) {
  while (!prefix.empty()) {
    const size_t slash = std::min(prefix.find('/'), prefix.size());
    if (!IsPlainName(prefix.substr(0, slash))) return false;
    prefix.remove_prefix(std::min(slash + 1, prefix.size()));
  }
  return true;
}

absl::StatusOr<Settings> ConfigSection(const Environment& environment) {
  const std::string profile = ProfileOf(environment);
  return ReadSection(PathOf(environment, "AWS_CONFIG_FILE", "config"),
                     profile == "default" ? profile : absl::StrCat("profile ", profile));
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

absl::StatusOr<S3Place> FindS3Place(absl::string_view url, const Environment& environment) {
  absl::string_view rest = url;
  const bool is_s3 = absl::ConsumePrefix(&rest, "s3://");
  absl::ConsumeSuffix(&rest, "/");
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string bucket(rest.substr(0, slash));
  rest.remove_prefix(std::min(slash + 1, rest.size()));
  if (!is_s3 || !IsPlainName(bucket) || !IsPlainPrefix(rest)) {
    return absl::InvalidArgumentError(absl::StrCat(
        url, " is not s3://BUCKET[/PREFIX], of letters, digits, \"-\", \".\" and \"_\""));
  }
  DISTRO_ASSIGN_OR_RETURN(const Settings config, ConfigSection(environment));
  S3Place place{.server = {},
                .region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}),
                .prefix = rest.empty() ? "" : absl::StrCat(rest, "/"),
                .url = std::string(absl::StripSuffix(url, "/"))};
  if (place.region.empty()) place.region = Or(SettingOf(config, "region"), "us-east-1");
  if (!IsPlainName(place.region))
    return absl::InvalidArgumentError(absl::StrCat("AWS_REGION: ", place.region, " is no region"));
  std::string endpoint = FirstOf(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (endpoint.empty()) endpoint = SettingOf(config, "endpoint_url");
  // A certificate for *.s3.amazonaws.com covers no name with a dot in the place of the asterisk.
  const bool in_host = endpoint.empty() && !absl::StrContains(bucket, ".");
  if (endpoint.empty()) endpoint = absl::StrCat("https://s3.", place.region, ".amazonaws.com");
  if (absl::StrContains(endpoint, "@")) {  // not in the message: it may be a password
    return absl::InvalidArgumentError(
        "AWS_ENDPOINT_URL: has a user in it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  }
  auto server = ParseHttpUrl(endpoint);
  if (!server.ok()) return Annotate(server.status(), "AWS_ENDPOINT_URL");
  place.server = *std::move(server);
  if (in_host) {
    place.server.host = absl::StrCat(bucket, ".", place.server.host);
  } else {
    absl::StrAppend(&place.server.path, "/", bucket);
  }
  return place;
}

absl::StatusOr<S3Credentials> FindS3Credentials(const Environment& environment) {
  S3Credentials found{.access_key = Or(environment("AWS_ACCESS_KEY_ID"), ""),
                      .secret_key = Or(environment("AWS_SECRET_ACCESS_KEY"), ""),
                      .session_token = Or(environment("AWS_SESSION_TOKEN"), "")};
  if (!found.access_key.empty() && !found.secret_key.empty()) return found;
  const std::string path = PathOf(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string profile = ProfileOf(environment);
  DISTRO_ASSIGN_OR_RETURN(const Settings section, ReadSection(path, profile));
  found = {.access_key = SettingOf(section, "aws_access_key_id"),
           .secret_key = SettingOf(section, "aws_secret_access_key"),
           .session_token = SettingOf(section, "aws_session_token")};
  if (!found.access_key.empty() && !found.secret_key.empty()) return found;
  return absl::PermissionDeniedError(
      absl::StrCat("no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                   "write aws_access_key_id and aws_secret_access_key into [",
                   profile, "] of ", path));
}

}  // namespace distro
