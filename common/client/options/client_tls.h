// Reads the files of a client's identity: its PEM files and its token, from separate files or from
// an invite (invite.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/client/options/channel_options.h"
#include "common/net/security/tls_files.h"

namespace distro {

struct ClientTlsFiles {
  TlsFiles files;  // with an invite that has CAs, `ca` is the invite's path
  TlsMaterial material;
};

// The statuses of ReadInvite and ReadTlsFiles; messages name the flags first.
absl::StatusOr<ClientTlsFiles> ReadClientTls(const ClientTls& tls);

// The token that calls carry. Requires `token_file` or `invite`. The statuses of ReadTokenFile and
// ReadInvite; messages name the flag first.
absl::StatusOr<std::string> ReadClientToken(const ClientTls& tls);

}  // namespace distro
