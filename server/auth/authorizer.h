// Authenticates and authorizes callers at the start of every handler (docs/security.md). The
// credential comes from the connection (a client certificate verified by TLS) or from the call (a
// token); if a call has both, the token counts. Thread-safe.
//
//   DISTRO_ASSIGN_OR_RETURN(Caller caller, authorizer->Check(context, Rpc::kJoin));
//   DISTRO_RETURN_IF_ERROR(caller.MayActAs(request.worker().name()));
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

// An authenticated caller. Cheap to copy; its observer must outlive the call.
class Caller {
 public:
  // The owner of a credential.
  Caller(std::string name, Role role, AuthObserver* observer)
      : name_(std::move(name)), role_(role), observer_(observer) {}

  // A caller when authentication is off: may act as any worker.
  static Caller Anybody();

  // "anybody", or the credential's name and role, for logs.
  std::string Describe() const;

  // The credential's name; empty for Anybody().
  const std::string& name() const { return name_; }

  bool MayCall(Rpc rpc) const { return observer_ == nullptr || server::MayCall(role_, rpc); }

  // Whether the caller may act as `worker`: a worker only under its own name, other roles not at
  // all (an archiver follows without a name). PermissionDenied `wrong_name` otherwise.
  absl::Status MayActAs(absl::string_view worker) const;

 private:
  Caller() = default;
  std::string name_;
  Role role_ = Role::kViewer;
  AuthObserver* observer_ = nullptr;  // null: anybody
};

// The credentials presented by a connection and by a call on it.
struct ShownCredential {
  std::vector<absl::string_view> authorizations;  // values of the metadata "authorization"
  absl::string_view certificate;                  // PEM, verified by TLS; empty: none
};

class Authorizer {
 public:
  // Without authentication: --insecure. Reports every accepted call and its owner to `connections`.
  // Pointers here and below are borrowed.
  explicit Authorizer(ConnectionTable* connections) : connections_(connections) {}
  // `tokens` may be null: client certificates only.
  Authorizer(TokenStore* tokens, AuthObserver* observer, ConnectionTable* connections)
      : authenticates_(true), tokens_(tokens), observer_(observer), connections_(connections) {}

  // The caller of `context`. Unauthenticated `unauthenticated`: no credential, or one that is not
  // known. PermissionDenied `role`: the caller's role may not call `rpc`.
  absl::StatusOr<Caller> Check(const grpc::ServerContextBase& context, Rpc rpc) const;

  // The owner of the credential, of any role. Unauthenticated as above.
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
