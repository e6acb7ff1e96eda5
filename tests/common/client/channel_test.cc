#include "common/client/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "distro/v1/admin.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

TEST(ParseAggregatorUrlTest, TakesHostAndPortWithOrWithoutScheme) {
  for (const char* url : {"host:7700", "grpc://host:7700", "http://host:7700", "http://host:7700/",
                          "grpcs://host:7700", "https://host:7700"}) {
    EXPECT_EQ(ParseAggregatorUrl(url).value_or("refused"), "host:7700") << url;
  }
  EXPECT_EQ(ParseAggregatorUrl("[::1]:7700").value_or("refused"), "[::1]:7700");
}

TEST(ParseAggregatorUrlTest, RefusesWhatIsNoAddress) {
  for (const char* url : {"", "host", ":7700", "host:", "host:0", "host:65536", "host:x",
                          "ftp://host:7700", "host:7700/path", "::1:7700", "unix:/tmp/socket"}) {
    EXPECT_EQ(ParseAggregatorUrl(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

TEST(OpenChannelTest, RefusesPlaintextThatWasNotAskedFor) {
  EXPECT_EQ(OpenChannel({"localhost:7700", false}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(OpenChannel({"localhost:7700", true}).ok());
}

TEST(OpenChannelTest, RefusesPlaintextToAnAddressThatAsksForTls) {
  for (const char* url : {"https://localhost:7700", "grpcs://localhost:7700"})
    EXPECT_EQ(OpenChannel({url, true}).status().code(), absl::StatusCode::kInvalidArgument) << url;
}

TEST(OpenChannelTest, NamesTheFileThatCannotBeUsed) {
  const testing::ScratchFolder folder;
  const std::string file = folder.File("file");
  ASSERT_TRUE(WriteFileAtomically(file, "not what it should be").ok());
  const ClientTls wrong[] = {
      {.token_file = file}, {.ca = file, .token_file = file}, {.cert = file, .key = file}};
  for (const ClientTls& tls : wrong) {
    const absl::Status status = OpenChannel({.aggregator = "localhost:7700", .tls = tls}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), ::testing::HasSubstr(file));
    EXPECT_THAT(status.message(), ::testing::Not(::testing::HasSubstr("what it should")));
  }
  const ClientTls none = {.token_file = folder.File("none")};
  EXPECT_EQ(OpenChannel({.aggregator = "localhost:7700", .tls = none}).status().code(),
            absl::StatusCode::kNotFound);
}

// Answers with a model's configuration of 200 KB, as a server may that was told to compress.
class Compressing final : public v1::AdminService::Service {
 public:
  explicit Compressing(grpc_compression_algorithm algorithm) : algorithm_(algorithm) {}
  grpc::Status GetRun(grpc::ServerContext* context, const v1::GetRunRequest* /*request*/,
                      v1::GetRunResponse* response) override {
    context->set_compression_algorithm(algorithm_);
    response->set_reason(std::string(200'000, 'x'));
    return grpc::Status::OK;
  }

 private:
  const grpc_compression_algorithm algorithm_;
};

TEST(OpenChannelTest, RefusesCompressedAnswersBeforeTheyAreInflated) {
  for (const auto& [algorithm, refused] :
       {std::pair(GRPC_COMPRESS_NONE, false), std::pair(GRPC_COMPRESS_GZIP, true),
        std::pair(GRPC_COMPRESS_DEFLATE, true)}) {
    Compressing service(algorithm);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    const auto channel = OpenChannel({absl::StrCat("127.0.0.1:", port), true});
    ASSERT_TRUE(channel.ok()) << channel.status();
    grpc::ClientContext context;
    v1::GetRunResponse response;
    const grpc::Status status =
        v1::AdminService::NewStub(*channel)->GetRun(&context, {}, &response);
    EXPECT_EQ(status.ok(), !refused) << algorithm << status.error_message();
    EXPECT_EQ(response.reason().size(), refused ? 0 : 200'000) << algorithm;
  }
}

TEST(ValidateCredentialTest, NamesFlagsAndRemedy) {
  struct Case {
    bool insecure;
    ClientTls tls;
    const char* names;
  };
  const Case cases[] = {{false, {}, "--token_file, or --cert and --key"},
                        {false, {.ca = "ca"}, "--insecure talks plaintext"},
                        {false, {.cert = "cert", .token_file = "token"}, "--cert and --key"},
                        {true, {.ca = "ca"}, "--insecure: contradicts --ca"},
                        {true, {.token_file = "token"}, "--token_file"},
                        {true, {.invite = "invite"}, "--invite"},
                        {false, {.invite = "invite", .token_file = "token"}, "leave --ca"}};
  for (const Case& c : cases) {
    const absl::Status status = ValidateCredential(c.insecure, c.tls);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), ::testing::HasSubstr(c.names));
  }
  EXPECT_TRUE(ValidateCredential(true, {}).ok());
  EXPECT_TRUE(ValidateCredential(false, {.token_file = "token"}).ok());
  EXPECT_TRUE(ValidateCredential(false, {.cert = "cert", .key = "key"}).ok());
}

TEST(ValidateClientTlsTest, NeedsNoCredentialAndRefusesWhatContradicts) {
  EXPECT_TRUE(ValidateClientTls(false, {.ca = "ca"}).ok());
  EXPECT_EQ(ValidateClientTls(true, {.ca = "ca"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ValidateClientTls(false, {.cert = "cert"}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
