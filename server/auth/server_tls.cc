#include "server/auth/server_tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utc_time.h"

namespace distro::server {
namespace {

absl::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// The views are valid during the call.
bool MayGoOn(const ServerTls::CallCheck& check, grpc_auth_context* connection,
             const grpc_metadata* metadata, size_t count) {
  absl::string_view path;
  ShownCredential shown;
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view key = View(metadata[i].key);
    if (key == ":path") path = View(metadata[i].value);
    if (key == "authorization") shown.authorizations.push_back(View(metadata[i].value));
  }
  grpc_auth_property_iterator properties =
      grpc_auth_context_find_properties_by_name(connection, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (const grpc_auth_property* found = grpc_auth_property_iterator_next(&properties))
    shown.certificate = {found->value, found->value_length};
  return check(path, shown);
}

// Clocks of the machine that issues a certificate and of this one may differ by this.
constexpr absl::Duration kClocksDiffer = absl::Minutes(5);

absl::Status CheckDates(const TlsFiles& files, const TlsMaterial& material, absl::Time now) {
  const bool ended = now > material.expiry;
  if (!ended && now + kClocksDiffer >= material.begin) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      files.cert, ": the certificate, or the one behind it, ", ended ? "ended " : "begins ",
      UtcText(ended ? material.expiry : material.begin), ", and the clock of this machine says ",
      UtcText(now), "; renew the certificate, or set the clock if it is wrong"));
}

// The files, as clients will take them now.
absl::StatusOr<TlsMaterial> ReadNow(const TlsFiles& files, const Clock& clock) {
  DISTRO_ASSIGN_OR_RETURN(TlsMaterial material, ReadTlsFiles(files, TlsSide::kServer));
  DISTRO_RETURN_IF_ERROR(CheckDates(files, material, clock.WallNow()));
  return material;
}

}  // namespace

// gRPC calls Fetch at each new connection. gRPC's C++ API has no such credentials, but its C API
// does. Unlike the file watcher of the C++ API, this keeps the old certificate if the new one
// cannot be used.
class ServerTls::ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingCredentials(ServerTls* tls, bool asks_clients) : tls_(tls) {
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asks_clients ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                         : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &ReloadingCredentials::Fetch, this));
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  // Not supported, use SetCallCheck: gRPC's wrapper for processors is not accessible from here.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

  void SetCallCheck(CallCheck check) {
    check_ = std::move(check);
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {&ReloadingCredentials::CheckCall, nullptr, this});
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // One call at a time.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    auto* const credentials = static_cast<ReloadingCredentials*>(self);
    std::shared_ptr<const TlsMaterial> current = credentials->tls_->material_.Get();
    if (current == credentials->fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const TlsMaterial& material = *current;
    const grpc_ssl_pem_key_cert_pair pair = {material.key.c_str(), material.cert.c_str()};
    // gRPC 1.51 ends the process when there are no roots here, even if no client certificate is
    // requested. In that case these roots are not used.
    const std::string& roots = material.ca.empty() ? material.cert : material.ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    credentials->fetched_ = std::move(current);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  static void CheckCall(void* self, grpc_auth_context* connection, const grpc_metadata* metadata,
                        size_t count, grpc_process_auth_metadata_done_cb done, void* user_data) {
    const bool ok =
        MayGoOn(static_cast<ReloadingCredentials*>(self)->check_, connection, metadata, count);
    done(user_data, nullptr, 0, nullptr, 0, ok ? GRPC_STATUS_OK : GRPC_STATUS_UNAUTHENTICATED,
         ok ? nullptr : "no credential that this aggregator knows");
  }

  ServerTls* const tls_;
  CallCheck check_;
  grpc_server_credentials* credentials_;
  std::shared_ptr<const TlsMaterial> fetched_;
};

absl::StatusOr<std::unique_ptr<ServerTls>> ServerTls::Open(const TlsFiles& files,
                                                           const Clock* clock, Log* log,
                                                           AuthObserver* observer) {
  std::unique_ptr<ServerTls> tls(new ServerTls(files, clock, log, observer));
  DISTRO_RETURN_IF_ERROR(tls->material_.Start());
  return tls;
}

ServerTls::ServerTls(const TlsFiles& files, const Clock* clock, Log* log, AuthObserver* observer)
    : files_(files),
      clock_(clock),
      credentials_(std::make_shared<ReloadingCredentials>(this, !files.ca.empty())),
      material_(
          {files.ca, files.cert, files.key}, [files, clock] { return ReadNow(files, *clock); },
          [files, log, observer](const absl::StatusOr<std::shared_ptr<const TlsMaterial>>& now) {
            if (now.ok()) {
              log->Info("certificate reloaded",
                        {{"file", files.cert}, {"expires", absl::FormatTime((*now)->expiry)}});
            } else {
              log->Error("certificate not reloaded: the previous one stays in use",
                         {{"reason", now.status()}});
            }
            observer->OnCredentialsReloaded("certificate", now.ok());
          },
          clock) {}

std::shared_ptr<grpc::ServerCredentials> ServerTls::Credentials() const { return credentials_; }

void ServerTls::SetCallCheck(CallCheck check) { credentials_->SetCallCheck(std::move(check)); }

absl::Status ServerTls::CheckDates() {
  return distro::server::CheckDates(files_, *material_.Get(), clock_->WallNow());
}

}  // namespace distro::server
