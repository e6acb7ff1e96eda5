// Identifies and authorizes callers, at the start of every handler (docs/security.md). The
// credential comes from the connection (a client certificate that TLS verified) or from the call (a
// token); a call with a token is the token's, whatever the certificate. Thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "server/auth/tokens/roles.h"
#include "server/auth/tokens/token_store.h"
#include "server/connections/connection_table.h"

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

  // Whether the request may be about `worker`: a worker acts for its own name only, other roles for
  // none (an archiver follows without a name). PermissionDenied `wrong_name` otherwise.
  absl::Status MayActAs(absl::string_view worker) const;

 private:
  Caller() = default;
  std::string name_;
  Role role_ = Role::kViewer;
  AuthObserver* observer_ = nullptr;  // null: anybody
};

// What a connection and a call on it show of who calls.
struct ShownCredential {
  std::vector<absl::string_view> authorizations;  // values of the metadata "authorization"
  absl::string_view certificate;                  // PEM, verified by TLS; empty: none
};

class Authorizer {
 public:
  // Nobody is authenticated: --insecure. `connections` is told of every call that is let in, and
  // whose it is; borrowed, as all that follow.
  explicit Authorizer(ConnectionTable* connections) : connections_(connections) {}
  // `tokens` may be null: client certificates only.
  Authorizer(TokenStore* tokens, AuthObserver* observer, ConnectionTable* connections)
      : authenticates_(true), tokens_(tokens), observer_(observer), connections_(connections) {}

  // The caller of `context`. Unauthenticated `unauthenticated`: no credential, or one that is not
  // known. PermissionDenied `role`: the caller's role may not call `rpc`.
  absl::StatusOr<Caller> Check(const grpc::ServerContextBase& context, Rpc rpc) const;

  // Whose credential it is, of any role. Unauthenticated as above.
  absl::StatusOr<Caller> Identify(const ShownCredential& shown) const;

  ConnectionTable* connections() const { return connections_; }

 private:
  absl::StatusOr<Caller> FromToken(absl::string_view header) const;
  absl::StatusOr<Caller> FromCertificate(absl::string_view certificate) const;

  const bool authenticates_ = false;
  TokenStore* const tokens_ = nullptr;
  AuthObserver* const observer_ = nullptr;
  ConnectionTable* const connections_;
};

}  // namespace distro::server
