#include "common/net/security/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "tests/common/net/security/issued_certificate.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro {
namespace {

using ::testing::AllOf;
using testing::Extension;
using ::testing::HasSubstr;
using testing::Issue;
using testing::IssuedCertificate;
using testing::IssuedOptions;
using ::testing::StartsWith;

const Extension kName = {NID_subject_alt_name, "IP:127.0.0.1"};
const Extension kIsCa = {NID_basic_constraints, "critical,CA:TRUE"};

class TlsFilesTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, absl::string_view bytes) {
    ASSERT_TRUE(WriteFileAtomically(folder_.File(name), bytes).ok());
  }
  absl::StatusOr<TlsMaterial> Read(TlsSide side, const std::string& chain, const std::string& key) {
    Write("cert", chain);
    Write("key", key);
    return ReadTlsFiles({.cert = folder_.File("cert"), .key = folder_.File("key")}, side);
  }
  absl::Status Server(const IssuedOptions& options) {
    const IssuedCertificate issued = Issue(&ca_, "aggregator", options);
    return Read(TlsSide::kServer, issued.CertPem(), issued.KeyPem()).status();
  }
  absl::Status Client(const IssuedOptions& options) {
    const IssuedCertificate issued = Issue(&ca_, "w1", options);
    return Read(TlsSide::kClient, issued.CertPem(), issued.KeyPem()).status();
  }
  absl::Status Ca(const std::string& pem) {
    Write("ca", pem);
    return ReadTlsFiles({.ca = folder_.File("ca")}, TlsSide::kClient).status();
  }
  // An InvalidArgument about the file, with its reason and its remedy.
  void ExpectRefused(const absl::Status& status, const std::string& file, const std::string& why,
                     const std::string& remedy) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(folder_.File(file) + ": "), HasSubstr(why), HasSubstr(remedy)));
    const std::string words = absl::StrReplaceAll(status.message(), {{folder_.File("cert"), "CERT"},
                                                                     {folder_.File("key"), "KEY"},
                                                                     {folder_.File("ca"), "CERT"}});
    EXPECT_TRUE(testing::TroubleshootingPageHas(words, "HOST:PORT", folder_.File(""))) << words;
  }

  const testing::ScratchFolder folder_;
  const IssuedCertificate ca_ = Issue(nullptr, "ca", {.extensions = {kIsCa}});
};

TEST_F(TlsFilesTest, TakesWhatAHandshakeTakes) {
  EXPECT_EQ(Server({.extensions = {kName}}), absl::OkStatus());
  EXPECT_EQ(Server({.rsa_bits = 2048, .extensions = {kName}}), absl::OkStatus());
  EXPECT_EQ(Server({.extensions = {kName, kIsCa}}), absl::OkStatus());
  EXPECT_EQ(Client({}), absl::OkStatus());
  const IssuedCertificate own = Issue(nullptr, "aggregator", {.extensions = {kName}});
  EXPECT_EQ(Read(TlsSide::kServer, own.CertPem(), own.KeyPem()).status(), absl::OkStatus());
  EXPECT_EQ(Ca(own.CertPem()), absl::OkStatus());
}

TEST_F(TlsFilesTest, RefusesWhatTheSecurityLevelForbids) {
  for (const auto& [options, why] :
       {std::pair(IssuedOptions{.rsa_bits = 1024, .extensions = {kName}}, "key too small"),
        std::pair(IssuedOptions{.digest = EVP_sha1(), .extensions = {kName}}, "md too weak")}) {
    ExpectRefused(Server(options), "cert", why, "make a key of RSA 2048 or EC P-256");
    ExpectRefused(Client(options), "cert", why, "signs with SHA-256");
  }
}

TEST_F(TlsFilesTest, RefusesACaThatTheSecurityLevelForbids) {
  const IssuedCertificate weak = Issue(nullptr, "weak", {.rsa_bits = 1024, .extensions = {kIsCa}});
  ExpectRefused(Ca(weak.CertPem()), "ca", "its key is too small", "RSA 2048");
  EXPECT_EQ(Ca(weak.CertPem() + ca_.CertPem()), absl::OkStatus());  // one of them is enough
  const IssuedCertificate leaf = Issue(&weak, "aggregator", {.extensions = {kName}});
  ExpectRefused(Read(TlsSide::kServer, leaf.CertPem() + weak.CertPem(), leaf.KeyPem()).status(),
                "cert", "key too small", "whose CA has such a key too");
}

TEST_F(TlsFilesTest, RefusesACertificateForAnotherUse) {
  const Extension client = {NID_ext_key_usage, "clientAuth"};
  const Extension server = {NID_ext_key_usage, "serverAuth"};
  ExpectRefused(Server({.extensions = {kName, client}}), "cert", "purpose", "serverAuth for");
  ExpectRefused(Client({.extensions = {server}}), "cert", "purpose", "clientAuth for a client");
  ExpectRefused(Server({.extensions = {kName, {NID_key_usage, "keyCertSign"}}}), "cert", "",
                "digitalSignature");
}

TEST_F(TlsFilesTest, RefusesAServersCertificateForNoHost) {
  ExpectRefused(Server({}), "cert", "no subjectAltName", "DNS:NAME or IP:ADDRESS");
}

TEST_F(TlsFilesTest, RefusesAChainThatDoesNotBeginWithTheCertificateOfTheKey) {
  const IssuedCertificate leaf = Issue(&ca_, "aggregator", {.extensions = {kName}});
  EXPECT_EQ(Read(TlsSide::kServer, leaf.CertPem() + ca_.CertPem(), leaf.KeyPem()).status(),
            absl::OkStatus());
  ExpectRefused(Read(TlsSide::kServer, ca_.CertPem() + leaf.CertPem(), leaf.KeyPem()).status(),
                "cert", "is number 2 in it", "put it first");
  ExpectRefused(Read(TlsSide::kServer, ca_.CertPem(), leaf.KeyPem()).status(), "key",
                "is not the key of the certificate", "");
}

TEST_F(TlsFilesTest, RefusesACertificateWhoseIssuerIsNoCa) {
  const IssuedCertificate first = Issue(&ca_, "no ca", {.extensions = {kName}});
  const IssuedCertificate leaf = Issue(&first, "aggregator", {.extensions = {kName}});
  ExpectRefused(Read(TlsSide::kServer, leaf.CertPem() + first.CertPem(), leaf.KeyPem()).status(),
                "cert", "CA certificate", "");
}

TEST_F(TlsFilesTest, RefusesAKeyWithAPassphrase) {
  const IssuedCertificate leaf = Issue(&ca_, "aggregator", {.extensions = {kName}});
  ExpectRefused(Read(TlsSide::kServer, leaf.CertPem(), leaf.KeyPem("1234")).status(), "key",
                "has a passphrase", "openssl pkey -in");
}

TEST_F(TlsFilesTest, RefusesADamagedCertificateBehindTheFirst) {
  const std::string damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  ExpectRefused(Ca(ca_.CertPem() + damaged), "ca", "certificate 2 in it is damaged",
                "copy the file again");
  EXPECT_THAT(std::string(Ca("no PEM").message()), HasSubstr("ca: holds no CA certificate"));
}

TEST_F(TlsFilesTest, ExpiresWithTheFirstOfCertificateAndIssuer) {
  const IssuedCertificate between =
      Issue(&ca_, "between", {.extensions = {kIsCa}, .valid = absl::Minutes(10)});
  const IssuedCertificate leaf = Issue(&between, "aggregator", {.extensions = {kName}});
  const auto read = Read(TlsSide::kServer, leaf.CertPem() + between.CertPem(), leaf.KeyPem());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_LT(read->expiry, absl::Now() + absl::Minutes(11));
  EXPECT_LT(read->begin, absl::Now());
}

}  // namespace
}  // namespace distro
