// An invite: one file with everything that a machine needs to take part in a run but its data. The
// operator makes it (`distroctl invite`) and hands it on; it is as secret as the token in it
// (docs/invites.md).
//
//   distro-invite 1
//   aggregator aggregator.example:7700
//   name w2
//   role worker
//   token 8Zr4...
//   run demo
//   data 6b51...
//   expires 2026-12-24T00:00:00Z
//   -----BEGIN CERTIFICATE-----
//   ...
//
// A line is a key and its value. What begins with the first certificate is the CA of the
// aggregator: the file is a PEM file, too. Pure but for ReadInvite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/client/options/channel_options.h"

namespace distro {

inline constexpr uint64_t kMaxInviteBytes = 1 << 18;

struct Invite {
  std::string aggregator = {};  // host:port
  std::string name = {};        // whose token it is: a worker's name in the run
  std::string role = {};        // worker, archiver, viewer or admin
  std::string token = {};
  std::string run = {};                         // name of the run; empty: any
  std::string data_fingerprint = {};            // of the run's data; empty: not said
  absl::Time expires = absl::InfiniteFuture();  // in whole seconds
  std::string ca = {};  // PEM; empty: the aggregator's certificate is one of the system's CAs

  bool operator==(const Invite&) const = default;
};

// InvalidArgument names the line or the key: no invite, a key that is not known or stands twice,
// one of the first four missing, a value that is none. No message has the token.
absl::StatusOr<Invite> ParseInvite(absl::string_view text);

// Requires values that ParseInvite takes.
std::string InviteText(const Invite& invite);

// The statuses of ReadFile, and of ParseInvite after "PATH: ".
absl::StatusOr<Invite> ReadInvite(const std::string& path);

// What a program does about --invite: nothing without one, else reads it and takes the aggregator's
// address from it unless another was given. Unauthenticated: it has expired. Otherwise as
// ReadInvite, after "--invite: ".
absl::StatusOr<std::optional<Invite>> TakeInvite(ChannelOptions* channel, absl::Time now);

// Whether the invite in `path` is for this role, which is that of the program. InvalidArgument
// names both.
absl::Status CheckInviteRole(const Invite& invite, absl::string_view path, absl::string_view role);

}  // namespace distro
