#include "common/client/channel.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/reloaded_files.h"
#include "common/base/status_macros.h"
#include "common/client/options/client_tls.h"
#include "common/client/options/proxy.h"
#include "common/net/security/token.h"
#include "common/net/wire/frames.h"
#include "grpc/compression.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/channel_arguments.h"

namespace distro {
namespace {

bool AsksForTls(absl::string_view url) {
  return absl::StartsWith(url, "grpcs://") || absl::StartsWith(url, "https://");
}

constexpr unsigned kRefreshSeconds = 10;

// The token of each call is the file's, so that a new token needs no restart.
class TokenFromFile final : public grpc::MetadataCredentialsPlugin {
 public:
  // The statuses of ReadClientToken.
  static absl::StatusOr<std::unique_ptr<TokenFromFile>> Open(const ClientTls& tls) {
    auto token = absl::WrapUnique(new TokenFromFile(tls));
    DISTRO_RETURN_IF_ERROR(token->token_.Start());
    return token;
  }

  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "distro_token"; }

  grpc::Status GetMetadata(grpc::string_ref /*service*/, grpc::string_ref /*method*/,
                           const grpc::AuthContext& /*context*/,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("authorization", absl::StrCat(kBearer, *token_.Get()));
    return grpc::Status::OK;
  }

 private:
  explicit TokenFromFile(const ClientTls& tls)
      : token_(
            {tls.token_file, tls.invite}, [tls] { return ReadClientToken(tls); },
            [](const auto& /*now*/) {}, Clock::Real()) {}

  Reloaded<std::string> token_;
};

std::shared_ptr<grpc::ChannelCredentials> TlsConnection(const TlsFiles& tls) {
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

// Checks the files first, so that errors name them. Requires ValidateClientTls(false, tls).
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(
    const ClientTls& tls) {
  DISTRO_ASSIGN_OR_RETURN(const ClientTlsFiles read, ReadClientTls(tls));
  std::shared_ptr<grpc::ChannelCredentials> connection = TlsConnection(read.files);
  if (tls.token_file.empty() && tls.invite.empty()) return connection;
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<TokenFromFile> token, TokenFromFile::Open(tls));
  return grpc::CompositeChannelCredentials(connection,
                                           grpc::MetadataCredentialsFromPlugin(std::move(token)));
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 40'000);  // home routers forget one after 60 s
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 60'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Callers have their own backoff, to which the channel must not add much.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kConnectAttempt)));
  // A Join response carries a model configuration of 1 MiB or more.
  arguments.SetMaxReceiveMessageSize(2 * kMaxMessageBytes);
  // The aggregator never compresses; a compressed message is refused before it is inflated.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  return arguments;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ChannelOptions& options) {
  DISTRO_RETURN_IF_ERROR(ValidateCredential(options.insecure, options.tls));
  return OpenAnonymousChannel(options);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenAnonymousChannel(const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::string target, ParseAggregatorUrl(options.aggregator));
  DISTRO_RETURN_IF_ERROR(ValidateClientTls(options.insecure, options.tls));
  DISTRO_ASSIGN_OR_RETURN(const HostPort to, ParseHostPort(target));
  grpc::ChannelArguments arguments = Arguments();
  DISTRO_ASSIGN_OR_RETURN(const std::optional<Proxy> proxy, ProxyFor(to.host));
  if (proxy)
    arguments.SetString(GRPC_ARG_HTTP_PROXY, proxy->uri);
  else
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.insecure) {
    if (AsksForTls(options.aggregator))
      return absl::InvalidArgumentError(absl::StrCat("aggregator: \"", options.aggregator,
                                                     "\": the address asks for TLS, and --insecure "
                                                     "for plaintext: give one or the other"));
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  }
  if (!options.tls.server_name.empty()) arguments.SetSslTargetNameOverride(options.tls.server_name);
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                          TlsChannelCredentials(options.tls));
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

}  // namespace distro
