// The aggregator's certificate, its key and the CA of client certificates: read again when they
// change, for connections that come after. Files that do not fit together then change nothing but a
// log line and a metric, so that a certificate and its key may be replaced one after the other.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/security/tls_files.h"
#include "grpcpp/security/server_credentials.h"
#include "server/auth/authorizer.h"
#include "server/auth/tokens/file_watch.h"
#include "server/auth/tokens/token_store.h"

namespace distro::server {

class ServerTls {
 public:
  // Whether a call of `path` ("/package.Service/Method") may go on, before any handler and any
  // message of it; false: Unauthenticated.
  using CallCheck = std::function<bool(absl::string_view path, const ShownCredential& shown)>;

  // All but the paths are borrowed. Errors as ReadTlsFiles.
  static absl::StatusOr<std::unique_ptr<ServerTls>> Open(const TlsFiles& files, const Clock* clock,
                                                         Log* log, AuthObserver* observer);

  // For a listening port. A client certificate is asked for where there is a CA, verified where it
  // is shown, and not required: a token can stand in for it. For one server, which ends before
  // this.
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;

  // Asks `check` at the beginning of every call. Before Credentials() are used; called by gRPC's
  // threads, must be quick.
  void SetCallCheck(CallCheck check);

  // When the certificate in use ends.
  absl::Time expiry();

  // What to serve now, and its number, which rises with each change.
  struct Served {
    std::shared_ptr<const TlsMaterial> material;
    uint64_t version = 0;
  };
  Served Current();

 private:
  class ReloadingCredentials;

  ServerTls(const TlsFiles& files, const Clock* clock, Log* log, AuthObserver* observer);
  void Reload() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TlsFiles files_;
  Log* const log_;
  AuthObserver* const observer_;
  // Here since gRPC asks it at each connection, but does not keep it.
  const std::shared_ptr<ReloadingCredentials> credentials_;

  absl::Mutex mu_;
  FileWatch watch_ ABSL_GUARDED_BY(mu_);
  Served served_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
