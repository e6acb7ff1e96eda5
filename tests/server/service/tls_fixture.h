// An aggregator with TLS, tokens and certificates.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/channel.h"
#include "common/net/security/dev_certificates.h"
#include "common/net/security/token.h"
#include "server/auth/tokens/roles.h"
#include "server/auth/tokens/tokens_file.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {

// `token-<role>` is the file of a token of that name and role, `token-nobody` one of a token that
// is not known.
class TlsServerTest : public ServerTest {
 protected:
  TlsServerTest() {
    // By the aggregator's clock, and by the clients' real one.
    const Validity forever = {clock_.WallNow() - absl::Hours(1), absl::Hours(24 * 3650)};
    ca_ = *MakeCa(forever);
    const auto server = IssueServerCertificate(ca_, {"127.0.0.1"}, forever);
    Write("ca", ca_.cert);
    Write("cert", server->cert);
    Write("key", server->key);
    std::string tokens;
    for (const server::Role role : server::kRoles) {
      const std::string name = absl::StrCat("token-", server::RoleName(role));
      const std::string token = *NewToken();
      Write(name, token + "\n");
      absl::StrAppend(&tokens, server::TokensLine(name, role, token), "\n");
    }
    Write("tokens", tokens);
    Write("token-nobody", *NewToken());
    StartTls();
  }

  void Write(const std::string& name, absl::string_view bytes) {
    ASSERT_TRUE(WriteFileAtomically(folder_.File(name), bytes).ok());
  }

  void StartTls() {
    server_ = nullptr;
    ASSERT_TRUE(WriteFileAtomically(folder_.File("run.json"), RunConfigToJson(SmallConfig())).ok());
    server::AggregatorOptions options = Options();
    options.run = folder_.File("run.json");
    options.model = folder_.File("model");
    options.insecure = false;
    options.ca = folder_.File("ca");
    options.cert = folder_.File("cert");
    options.key = folder_.File("key");
    options.tokens_file = folder_.File("tokens");
    auto server = server::AggregatorServer::Start(options, &clock_, &log_,
                                                  [this](absl::Status s) { fatal_ = s; });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::shared_ptr<grpc::Channel> Open(ClientTls tls) {
    tls.ca = folder_.File("ca");
    auto channel = OpenChannel({.aggregator = server_->grpc_address(), .tls = tls});
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *channel;
  }
  std::shared_ptr<grpc::Channel> WithToken(const std::string& name) {
    ClientTls tls;
    tls.token_file = folder_.File(name);
    return Open(tls);
  }

  KeyedCertificate ca_;
};

}  // namespace distro::testing
