// An invite: one file with everything that a machine needs to join a run, except its data. The
// operator makes it (`distroctl invite`) and passes it on; it contains a token and must be kept as
// secret as one (docs/invites.md).
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
// Each line is a key and its value. From the first certificate on, the file is the aggregator's CA
// in PEM form, so the whole file can be used as a PEM file. Pure, except ReadInvite.
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
  std::string data_fingerprint = {};            // of the run's data; empty: not given
  absl::Time expires = absl::InfiniteFuture();  // in whole seconds
  std::string ca = {};                          // PEM; empty: the system's CAs

  bool operator==(const Invite&) const = default;
};

// InvalidArgument names the line or the key: not an invite, an unknown or repeated key, one of the
// first four missing, or an invalid value. No message contains the token.
absl::StatusOr<Invite> ParseInvite(absl::string_view text);

// Requires values that ParseInvite accepts.
std::string InviteText(const Invite& invite);

// The statuses of ReadFile, and of ParseInvite after "PATH: ".
absl::StatusOr<Invite> ReadInvite(const std::string& path);

// Applies --invite: reads the file, if the flag is given, and takes the aggregator's address from
// it unless another was given. Unauthenticated: the invite has expired. Otherwise as ReadInvite,
// after "--invite: ".
absl::StatusOr<std::optional<Invite>> TakeInvite(ChannelOptions* channel, absl::Time now);

// Checks that the invite in `path` is for `role`, the role of this program. InvalidArgument names
// both.
absl::Status CheckInviteRole(const Invite& invite, absl::string_view path, absl::string_view role);

// TakeInvite for a worker whose name was given as `name`, or not (empty). Also InvalidArgument: the
// invite is for another role or another name.
absl::StatusOr<std::optional<Invite>> TakeWorkersInvite(ChannelOptions* channel,
                                                        absl::string_view name, absl::Time now);

}  // namespace distro
