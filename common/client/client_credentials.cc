#include "common/client/client_credentials.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/rpc/status.h"
#include "common/security/tls_files.h"
#include "common/security/token.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace distro {
namespace {

constexpr unsigned kRefreshSeconds = 10;

// Reads the token at each call, so that a new one needs no new process. A file of 44 bytes: no thread of its own.
class TokenFromFile final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenFromFile(std::string path) : path_(std::move(path)) {}

  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "distro_token"; }

  grpc::Status GetMetadata(grpc::string_ref /*service*/, grpc::string_ref /*method*/,
                           const grpc::AuthContext& /*context*/,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    const absl::StatusOr<std::string> token = ReadTokenFile(path_);
    if (!token.ok()) return ToGrpcStatus(token.status());
    metadata->emplace("authorization", absl::StrCat(kBearer, *token));
    return grpc::Status::OK;
  }

 private:
  const std::string path_;
};

std::shared_ptr<grpc::ChannelCredentials> Connection(const ClientTls& tls) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!tls.ca.empty() || !tls.cert.empty()) {
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
            tls.key, tls.cert, tls.ca, kRefreshSeconds));
  }
  if (!tls.ca.empty()) options.watch_root_certs();
  if (!tls.cert.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(
    const ClientTls& tls) {
  DISTRO_RETURN_IF_ERROR(
      Annotate(ReadTlsFiles({tls.ca, tls.cert, tls.key}).status(), "--ca, --cert, --key"));
  std::shared_ptr<grpc::ChannelCredentials> connection = Connection(tls);
  if (tls.token_file.empty()) return connection;
  DISTRO_RETURN_IF_ERROR(Annotate(ReadTokenFile(tls.token_file).status(), "--token_file"));
  return grpc::CompositeChannelCredentials(
      connection,
      grpc::MetadataCredentialsFromPlugin(std::make_unique<TokenFromFile>(tls.token_file)));
}

}  // namespace distro
