#include "common/net/security/tls_trial.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace distro {
namespace {

using openssl::Owned;

// Errors of certificates above the issuer are left to the peer, which may know a shorter way to its
// CA.
constexpr int kDeepestChecked = 1;
// A handshake takes fewer turns.
constexpr int kMostTurns = 20;

absl::Status Refused(absl::string_view why, absl::string_view remedy) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(why, "; ", remedy));
}

absl::string_view RemedyFor(absl::string_view why) {
  if (absl::StrContains(why, "too small") || absl::StrContains(why, "too weak")) {
    return "OpenSSL's security level on this machine forbids it: make a key of RSA 2048 or EC "
           "P-256, and a certificate whose CA has such a key too and signs with SHA-256";
  }
  if (absl::StrContains(why, "purpose"))
    return "issue one whose keyUsage has digitalSignature, and whose extendedKeyUsage, if it has "
           "one, has serverAuth for an aggregator or clientAuth for a client";
  if (absl::StrContains(why, "CA certificate"))
    return "put the certificates of the CAs in between behind it, and no other";
  return "issue another one, for example with a key of EC P-256 and SHA-256";
}

absl::Status RefusedFor(absl::string_view why) {
  return Refused(absl::StrCat("no TLS connection can use it: ", why), RemedyFor(why));
}

// The oldest error in OpenSSL's queue, which is the cause.
absl::Status RefusedByOpenSsl() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return RefusedFor(reason == nullptr ? "OpenSSL does not say why" : reason);
}

// What a peer found; its error depth decides what counts.
struct Found {
  int error = X509_V_OK;
};

int TakeVerdict(int ok, X509_STORE_CTX* verification) {
  if (ok == 1 || X509_STORE_CTX_get_error_depth(verification) > kDeepestChecked) return 1;
  auto* const end = static_cast<SSL*>(
      X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx()));
  static_cast<Found*>(SSL_get_app_data(end))->error = X509_STORE_CTX_get_error(verification);
  return 0;
}

// The end that shows the certificate; so does the other one, because a server must have one.
absl::Status UseIdentity(SSL_CTX* context, const std::vector<Owned<X509>>& chain, EVP_PKEY* key) {
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key) != 1) {
    return RefusedByOpenSsl();
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) return RefusedByOpenSsl();
  }
  return absl::OkStatus();
}

// The end that verifies. It trusts the certificate itself, because the peer's CA is not known here.
bool Verify(SSL_CTX* context, X509* certificate) {
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context),
                              X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, &TakeVerdict);
  return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1;
}

Owned<SSL_CTX> NewContext(const SSL_METHOD* method) {
  Owned<SSL_CTX> context(SSL_CTX_new(method));
  if (context != nullptr) SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  return context;
}

// Whether both ends say that the handshake is over.
bool ShakeHands(SSL* client, SSL* server) {
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const int asked = SSL_do_handshake(client);
    if (asked != 1 && SSL_get_error(client, asked) == SSL_ERROR_SSL) return false;
    const int answered = SSL_do_handshake(server);
    if (answered != 1 && SSL_get_error(server, answered) == SSL_ERROR_SSL) return false;
    if (asked == 1 && answered == 1) return true;
  }
  return false;
}

bool Join(SSL* client, SSL* server) {
  BIO* of_client = nullptr;
  BIO* of_server = nullptr;
  if (BIO_new_bio_pair(&of_client, 0, &of_server, 0) != 1) return false;
  SSL_set_bio(client, of_client, of_client);
  SSL_set_bio(server, of_server, of_server);
  SSL_set_connect_state(client);
  SSL_set_accept_state(server);
  return true;
}

}  // namespace

absl::Status TryHandshake(TlsSide side, const std::vector<Owned<X509>>& chain, EVP_PKEY* key) {
  ERR_clear_error();
  const Owned<SSL_CTX> client_context = NewContext(TLS_client_method());
  const Owned<SSL_CTX> server_context = NewContext(TLS_server_method());
  if (client_context == nullptr || server_context == nullptr) return RefusedByOpenSsl();
  absl::Status used = UseIdentity(server_context.get(), chain, key);
  if (used.ok() && side == TlsSide::kClient) used = UseIdentity(client_context.get(), chain, key);
  if (!used.ok()) return used;
  SSL_CTX* const verifies = side == TlsSide::kServer ? client_context.get() : server_context.get();
  if (!Verify(verifies, chain.front().get())) return RefusedByOpenSsl();
  const Owned<SSL> client(SSL_new(client_context.get()));
  const Owned<SSL> server(SSL_new(server_context.get()));
  if (client == nullptr || server == nullptr || !Join(client.get(), server.get()))
    return RefusedByOpenSsl();
  Found found;
  SSL_set_app_data(client.get(), &found);
  SSL_set_app_data(server.get(), &found);
  const bool done = ShakeHands(client.get(), server.get());
  if (found.error != X509_V_OK) return RefusedFor(X509_verify_cert_error_string(found.error));
  if (!done) return RefusedByOpenSsl();
  ERR_clear_error();
  return absl::OkStatus();
}

absl::Status CheckCaStrength(X509* ca) {
  ERR_clear_error();
  const Owned<SSL_CTX> context = NewContext(TLS_client_method());
  const Owned<SSL> end(context == nullptr ? nullptr : SSL_new(context.get()));
  EVP_PKEY* const key = X509_get0_pubkey(ca);
  if (end == nullptr || key == nullptr) return RefusedByOpenSsl();
  static constexpr int kBitsOfLevel[] = {0, 80, 112, 128, 192, 256};
  const int level = SSL_get_security_level(end.get());
  const int needed = kBitsOfLevel[std::clamp(level, 0, 5)];
  const int bits = EVP_PKEY_get_security_bits(key);
  if (bits >= needed) return absl::OkStatus();
  return RefusedFor(absl::StrCat("its key is too small: ", bits, " bits of security, of ", needed));
}

}  // namespace distro
