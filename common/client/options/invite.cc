#include "common/client/options/invite.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utc_time.h"
#include "common/net/security/tls_files.h"
#include "common/net/security/token.h"

namespace distro {
namespace {

constexpr absl::string_view kMagic = "distro-invite 1";
constexpr absl::string_view kKeys[] = {"aggregator", "name", "role",   "token",
                                       "run",        "data", "expires"};
constexpr size_t kRequired = 4;  // the first four keys
constexpr size_t kMaxValueBytes = 256;

absl::Status Bad(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", why));
}

bool IsPrintable(absl::string_view value) {
  for (const char c : value) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) return false;
  }
  return !value.empty() && value.size() <= kMaxValueBytes;
}

using Values = std::map<absl::string_view, absl::string_view>;

// Parses the lines before the certificates.
absl::StatusOr<Values> ReadLines(absl::string_view head) {
  Values values;
  int number = 1;
  for (const absl::string_view line : absl::StrSplit(head, '\n')) {
    const std::string where = absl::StrCat("line ", ++number);
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (stripped.empty()) continue;
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(stripped, absl::MaxSplits(' ', 1));
    const absl::string_view value = absl::StripAsciiWhitespace(pair.second);
    const auto* const key = std::find(std::begin(kKeys), std::end(kKeys), pair.first);
    if (key == std::end(kKeys))
      return Bad(where,
                 "is unknown: the invite is damaged or of a newer version; ask for a new one");
    if (!IsPrintable(value)) return Bad(where, absl::StrCat(*key, " has an invalid value"));
    if (!values.emplace(*key, value).second)
      return Bad(where, absl::StrCat(*key, " is there twice"));
  }
  for (size_t i = 0; i < kRequired; ++i) {
    if (!values.contains(kKeys[i])) return Bad(kKeys[i], "is missing");
  }
  return values;
}

}  // namespace

absl::StatusOr<Invite> ParseInvite(absl::string_view text) {
  const size_t end_of_magic = text.find('\n');
  if (end_of_magic == absl::string_view::npos ||
      absl::StripAsciiWhitespace(text.substr(0, end_of_magic)) != kMagic) {
    return absl::InvalidArgumentError(
        "is not an invite that this program can read: its first line is not `distro-invite 1`");
  }
  const size_t pem = std::min(text.find(kBeginCertificate), text.size());
  if (pem < end_of_magic)
    return Bad("line 1", "is a certificate, and belongs below the other lines");
  DISTRO_ASSIGN_OR_RETURN(Values values,
                          ReadLines(text.substr(end_of_magic + 1, pem - end_of_magic - 1)));
  Invite invite = {.aggregator = std::string(values["aggregator"]),
                   .name = std::string(values["name"]),
                   .role = std::string(values["role"]),
                   .token = std::string(values["token"]),
                   .run = std::string(values["run"]),
                   .data_fingerprint = std::string(values["data"]),
                   .ca = std::string(text.substr(pem))};
  DISTRO_RETURN_IF_ERROR(ValidateName(invite.name, "name"));
  if (!invite.run.empty()) DISTRO_RETURN_IF_ERROR(ValidateName(invite.run, "run"));
  if (!IsToken(invite.token)) return Bad("token", "is not 43 characters of base64url");
  if (invite.role != "worker" && invite.role != "archiver" && invite.role != "viewer" &&
      invite.role != "admin")
    return Bad("role", "is none of worker, archiver, viewer, admin");
  const absl::string_view expires = values["expires"];
  if (!expires.empty()) {
    const std::optional<absl::Time> time = ParseUtcText(expires);
    if (!time) return Bad("expires", "is no time such as 2026-12-24T00:00:00Z");
    invite.expires = *time;
  }
  return invite;
}

std::string InviteText(const Invite& invite) {
  std::string text =
      absl::StrCat(kMagic, "\naggregator ", invite.aggregator, "\nname ", invite.name, "\nrole ",
                   invite.role, "\ntoken ", invite.token, "\n");
  if (!invite.run.empty()) absl::StrAppend(&text, "run ", invite.run, "\n");
  if (!invite.data_fingerprint.empty())
    absl::StrAppend(&text, "data ", invite.data_fingerprint, "\n");
  if (invite.expires != absl::InfiniteFuture())
    absl::StrAppend(&text, "expires ", UtcText(invite.expires), "\n");
  return absl::StrCat(text, invite.ca);
}

absl::StatusOr<Invite> ReadInvite(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxInviteBytes));
  absl::StatusOr<Invite> invite = ParseInvite(text);
  if (!invite.ok()) return Annotate(invite.status(), path);
  return invite;
}

absl::StatusOr<std::optional<Invite>> TakeInvite(ChannelOptions* channel, absl::Time now) {
  const std::string& path = channel->tls.invite;
  if (path.empty()) return std::nullopt;
  absl::StatusOr<Invite> invite = ReadInvite(path);
  if (!invite.ok()) return Annotate(invite.status(), "--invite");
  if (now > invite->expires) {
    return absl::UnauthenticatedError(
        absl::StrCat("--invite: ", path, ": expired at ", UtcText(invite->expires),
                     ", and the clock of this machine says ", UtcText(now),
                     ": ask whoever made it for a new one (distroctl invite), or set the clock"));
  }
  if (channel->aggregator.empty()) channel->aggregator = invite->aggregator;
  return *std::move(invite);
}

absl::Status CheckInviteRole(const Invite& invite, absl::string_view path, absl::string_view role) {
  if (invite.role == role) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--invite: ", path, ": is for the role ", invite.role, ", and this program is ",
                   role, ": ask for one of that role (distroctl invite NAME --role ", role, ")"));
}

absl::StatusOr<std::optional<Invite>> TakeWorkersInvite(ChannelOptions* channel,
                                                        absl::string_view name, absl::Time now) {
  DISTRO_ASSIGN_OR_RETURN(std::optional<Invite> invite, TakeInvite(channel, now));
  if (!invite.has_value()) return std::nullopt;
  DISTRO_RETURN_IF_ERROR(CheckInviteRole(*invite, channel->tls.invite, "worker"));
  if (name.empty() || name == invite->name) return invite;
  return absl::InvalidArgumentError(absl::StrCat(
      "--name: ", name, ": the invite's token is that of ", invite->name, ": leave --name out"));
}

}  // namespace distro
