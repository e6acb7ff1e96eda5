#include "common/client/options/client_tls.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/options/invite.h"
#include "common/net/security/token.h"

namespace distro {
namespace {

absl::StatusOr<Invite> ReadInviteOf(const ClientTls& tls) {
  absl::StatusOr<Invite> invite = ReadInvite(tls.invite);
  if (!invite.ok()) return Annotate(invite.status(), "--invite");
  return invite;
}

absl::StatusOr<TlsFiles> FilesOf(const ClientTls& tls) {
  if (tls.invite.empty()) return TlsFiles{.ca = tls.ca, .cert = tls.cert, .key = tls.key};
  DISTRO_ASSIGN_OR_RETURN(const Invite invite, ReadInviteOf(tls));
  return TlsFiles{.ca = invite.ca.empty() ? std::string() : tls.invite};
}

}  // namespace

absl::StatusOr<ClientTlsFiles> ReadClientTls(const ClientTls& tls) {
  DISTRO_ASSIGN_OR_RETURN(TlsFiles files, FilesOf(tls));
  absl::StatusOr<TlsMaterial> material = ReadTlsFiles(files, TlsSide::kClient);
  if (!material.ok())
    return Annotate(material.status(), tls.invite.empty() ? "--ca, --cert, --key" : "--invite");
  return ClientTlsFiles{.files = std::move(files), .material = *std::move(material)};
}

absl::StatusOr<std::string> ReadClientToken(const ClientTls& tls) {
  if (!tls.invite.empty()) {
    DISTRO_ASSIGN_OR_RETURN(Invite invite, ReadInviteOf(tls));
    return std::move(invite.token);
  }
  absl::StatusOr<std::string> token = ReadTokenFile(tls.token_file);
  if (!token.ok()) return Annotate(token.status(), "--token_file");
  return token;
}

}  // namespace distro
