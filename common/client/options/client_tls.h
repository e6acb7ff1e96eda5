// Reads the files of a client's identity: the contents of its PEM files and its token, whether they
// are files of their own or in an invite (invite.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/client/options/channel_options.h"
#include "common/security/tls_files.h"

namespace distro {

struct ClientTlsFiles {
  TlsFiles files;  // `ca` is the invite's path where the invite has the CAs
  TlsMaterial material;
};

// The statuses of ReadInvite and ReadTlsFiles, after the flags that named the files.
absl::StatusOr<ClientTlsFiles> ReadClientTls(const ClientTls& tls);

// The token that calls carry; requires `token_file` or `invite`. The statuses of ReadTokenFile and
// ReadInvite, after the flag that named the file.
absl::StatusOr<std::string> ReadClientToken(const ClientTls& tls);

}  // namespace distro
