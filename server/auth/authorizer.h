// Who calls, and whether this caller may: asked at the start of every handler (docs/security.md). What the credential
// says comes from the connection (a client certificate that TLS verified) or from the call (a token); a call with a
// token is the token's, whatever the certificate. Thread-safe.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "server/auth/auth_observer.h"
#include "server/auth/roles.h"
#include "server/auth/token_store.h"

namespace distro::server {

// Who calls. Copied freely; the observer behind it outlives the call.
class Caller {
 public:
  // Somebody whose credential is `name`'s.
  Caller(std::string name, Role role, AuthObserver* observer)
      : name_(std::move(name)), role_(role), observer_(observer) {}

  // Somebody who is believed, since nobody is authenticated.
  static Caller Anybody();

  // "anybody", or the credential's name and role, for logs.
  std::string Describe() const;

  // Of the credential; empty: anybody.
  const std::string& name() const { return name_; }

  bool MayCall(Rpc rpc) const { return observer_ == nullptr || server::MayCall(role_, rpc); }

  // Whether the request may be about `worker`: a worker acts for its own name only, other roles for none (an archiver
  // follows without a name). PermissionDenied `wrong_name` otherwise.
  absl::Status MayActAs(absl::string_view worker) const;

 private:
  Caller() = default;
  std::string name_;
  Role role_ = Role::kViewer;
  AuthObserver* observer_ = nullptr;  // null: anybody
};

class Authorizer {
 public:
  // Nobody is authenticated: --insecure.
  Authorizer() = default;
  // `tokens` may be null: client certificates only. Both are borrowed.
  Authorizer(TokenStore* tokens, AuthObserver* observer)
      : authenticates_(true), tokens_(tokens), observer_(observer) {}

  // The caller of `context`. Unauthenticated `unauthenticated`: no credential, or one that is not known.
  // PermissionDenied `role`: the caller's role may not call `rpc`.
  absl::StatusOr<Caller> Check(const grpc::ServerContextBase& context, Rpc rpc) const;

  // Check and MayActAs: for a request that names its worker at once.
  absl::Status CheckWorker(const grpc::ServerContextBase& context, Rpc rpc,
                           absl::string_view worker) const;

 private:
  absl::StatusOr<Caller> Identify(const grpc::ServerContextBase& context) const;
  absl::StatusOr<Caller> FromToken(absl::string_view header) const;
  absl::StatusOr<Caller> FromCertificate(const grpc::ServerContextBase& context) const;

  const bool authenticates_ = false;
  TokenStore* const tokens_ = nullptr;
  AuthObserver* const observer_ = nullptr;
};

}  // namespace distro::server
