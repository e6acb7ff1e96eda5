// The aggregator's certificate and key, and the CA of client certificates. A thread reloads the
// files when they change; new connections use the new ones. Files that cannot be used, or whose
// disk does not answer, are logged and counted, and the old ones stay in use, so a certificate and
// its key may be replaced one after the other. Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reloaded_files.h"
#include "common/net/security/tls_files.h"
#include "grpcpp/security/server_credentials.h"
#include "server/auth/authorizer.h"
#include "server/auth/tokens/token_store.h"

namespace distro::server {

class ServerTls {
 public:
  // Decides, before any handler or message, whether a call of `path` ("/package.Service/Method")
  // may continue; false: Unauthenticated.
  using CallCheck = std::function<bool(absl::string_view path, const ShownCredential& shown)>;

  // All but the paths are borrowed. Errors as ReadTlsFiles, and Unavailable: by the clock, the
  // certificate has ended or not begun.
  static absl::StatusOr<std::unique_ptr<ServerTls>> Open(const TlsFiles& files, const Clock* clock,
                                                         Log* log, AuthObserver* observer);

  // Credentials for a listening port. With a CA, a client certificate is requested and verified if
  // presented, but not required: a token can replace it. For one server, which must end before this
  // object.
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;

  // Calls `check` at the beginning of every call, on gRPC's threads: it must be quick. Set it
  // before Credentials() are used.
  void SetCallCheck(CallCheck check);

  // When the certificate in use expires.
  absl::Time expiry() { return material_.Get()->expiry; }
  // Unavailable: the certificate in use has ended by the clock.
  absl::Status CheckDates();

  // Why the files' certificate is not in use (Reloaded::problem).
  absl::Status problem() { return material_.problem(); }

 private:
  class ReloadingCredentials;

  ServerTls(const TlsFiles& files, const Clock* clock, Log* log, AuthObserver* observer);

  const TlsFiles files_;
  const Clock* const clock_;
  // Kept here because gRPC uses it at each connection but does not own it.
  const std::shared_ptr<ReloadingCredentials> credentials_;
  Reloaded<TlsMaterial> material_;
};

}  // namespace distro::server
