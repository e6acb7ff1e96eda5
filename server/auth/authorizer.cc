#include "server/auth/authorizer.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/reason.h"
#include "common/net/security/tls_files.h"
#include "common/net/security/token.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"

namespace distro::server {
namespace {

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

absl::Status Unauthenticated(absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kUnauthenticated, "unauthenticated", why);
}

// The views are valid during the call.
ShownCredential ShownBy(const grpc::ServerContextBase& context) {
  ShownCredential shown;
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto i = begin; i != end; ++i) shown.authorizations.push_back(View(i->second));
  const auto certificates =
      context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (!certificates.empty()) shown.certificate = View(certificates.front());
  return shown;
}

}  // namespace

Caller Caller::Anybody() { return Caller(); }

std::string Caller::Describe() const {
  return observer_ == nullptr ? "anybody" : absl::StrCat(RoleName(role_), " ", name_);
}

absl::Status Caller::MayActAs(absl::string_view worker) const {
  if (observer_ == nullptr) return absl::OkStatus();
  if (worker == (role_ == Role::kWorker ? name_ : "")) return absl::OkStatus();
  observer_->OnCallRefused("wrong_name");
  return ErrorWithReason(absl::StatusCode::kPermissionDenied, "wrong_name",
                         absl::StrCat("the credential is that of ", Describe(),
                                      ", the request is in another name: give that as --name"));
}

absl::StatusOr<Caller> Authorizer::Check(const grpc::ServerContextBase& context, Rpc rpc) const {
  const std::string endpoint = EndpointOfGrpcPeer(context.peer());
  const absl::Duration now = Clock::Real()->MonotonicNow();
  if (!authenticates_) {
    connections_->OnCall(endpoint, "", now);
    return Caller::Anybody();
  }
  absl::StatusOr<Caller> caller = Identify(ShownBy(context));
  if (!caller.ok()) {
    connections_->OnRefusedCall(endpoint, now);
    observer_->OnCallRefused("unauthenticated");
    return caller;
  }
  connections_->OnCall(endpoint, caller->Describe(), now);
  if (caller->MayCall(rpc)) return caller;
  observer_->OnCallRefused("role");
  return ErrorWithReason(absl::StatusCode::kPermissionDenied, "role",
                         absl::StrCat("the credential is that of ", caller->Describe(),
                                      ", whose role may not call ", RpcName(rpc)));
}

absl::StatusOr<Caller> Authorizer::Identify(const ShownCredential& shown) const {
  if (shown.authorizations.empty()) return FromCertificate(shown.certificate);
  if (shown.authorizations.size() != 1)
    return Unauthenticated("there is more than one authorization");
  return FromToken(shown.authorizations.front());
}

absl::StatusOr<Caller> Authorizer::FromToken(absl::string_view header) const {
  if (!absl::ConsumePrefix(&header, kBearer) || !IsToken(header))
    return Unauthenticated("the authorization is not a bearer token of 43 characters");
  if (tokens_ == nullptr) {
    return Unauthenticated(
        "this aggregator knows no tokens, only client certificates (--cert, --key)");
  }
  absl::StatusOr<TokenOwner> owner = tokens_->Find(header);
  if (!owner.ok()) return Unauthenticated(owner.status().message());
  return Caller(std::move(owner->name), owner->role, observer_);
}

absl::StatusOr<Caller> Authorizer::FromCertificate(absl::string_view certificate) const {
  if (certificate.empty()) {
    return Unauthenticated(
        "no credential: neither a client certificate (--cert, --key) nor a token (--token_file)");
  }
  const absl::StatusOr<CertificateSubject> subject = SubjectOf(certificate);
  if (!subject.ok()) return Unauthenticated(subject.status().message());
  const std::optional<Role> role = ParseRole(subject->role);
  if (!role || !ValidateName(subject->name, "CN").ok()) {
    return Unauthenticated(
        "the client certificate's CN is no name of [a-z0-9-]{1,63}, or its OU none of worker, "
        "archiver, viewer, admin");
  }
  return Caller(subject->name, *role, observer_);
}

}  // namespace distro::server
