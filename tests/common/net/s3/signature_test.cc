// The examples of AWS's page on the Authorization header of S3.
#include "common/net/s3/signature.h"

#include <string>

#include "common/base/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::Pair;

constexpr char kHost[] = "examplebucket.s3.amazonaws.com";
const S3Credentials kExample{.access_key = "AKIAIOSFODNN7EXAMPLE",
                             .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};

std::string AuthorizationOf(S3Request request, absl::string_view content,
                            const S3Credentials& credentials = kExample) {
  const std::string sha256 = ToHex(Sha256(content));
  request.host = kHost;
  request.content_sha256 = sha256;
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, "2013-05-24T00:00:00Z", &time, &error));
  const HttpHeaders headers = Sign(request, credentials, "us-east-1", time);
  EXPECT_THAT(headers, Contains(Pair("x-amz-date", "20130524T000000Z")));
  EXPECT_THAT(headers, Contains(Pair("x-amz-content-sha256", sha256)));
  for (const auto& [name, value] : headers) {
    if (name == "Authorization") return value;
  }
  return "";
}

TEST(SignatureTest, GetsAPartOfAnObject) {
  EXPECT_EQ(AuthorizationOf(
                {.method = "GET", .path = "/test.txt", .headers = {{"Range", "bytes=0-9"}}}, ""),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SignatureTest, PutsAnObject) {
  EXPECT_THAT(AuthorizationOf({.method = "PUT",
                               .path = "/test%24file.text",
                               .headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                                           {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}},
                              "Welcome to Amazon S3."),
              EndsWith("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(SignatureTest, SignsAQueryWithoutAValue) {
  EXPECT_THAT(AuthorizationOf({.method = "GET", .path = "/", .query = {{"lifecycle", ""}}}, ""),
              EndsWith("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(SignatureTest, SignsAQueryInTheOrderOfItsNames) {
  EXPECT_THAT(
      AuthorizationOf({.method = "GET", .path = "/", .query = {{"prefix", "J"}, {"max-keys", "2"}}},
                      ""),
      EndsWith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(SignatureTest, OrdersNamesAndNotPairs) {
  EXPECT_EQ(EncodedQuery({.query = {{"a-b", "1"}, {"a", "2"}, {"c/d", "e f"}}}),
            "a=2&a-b=1&c%2Fd=e%20f");
}

TEST(SignatureTest, CoversTheToken) {
  S3Credentials credentials = kExample;
  credentials.session_token = "token";
  EXPECT_THAT(AuthorizationOf({.method = "GET", .path = "/"}, "", credentials),
              ::testing::HasSubstr(
                  "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
}

TEST(SignatureTest, Encodes) {
  EXPECT_EQ(UriEncode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(UriEncode("a b/c+\xff"), "a%20b%2Fc%2B%FF");
}

}  // namespace
}  // namespace distro
