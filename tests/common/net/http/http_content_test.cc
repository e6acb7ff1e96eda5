// Responses that are read while they are sent.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/net/http/http_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/net/http/raw_client.h"

namespace distro {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Bytes that say where they are; cannot be read from `readable` on.
class Counted final : public HttpContent {
 public:
  Counted(uint64_t bytes, uint64_t readable) : bytes_(bytes), readable_(readable) {}
  uint64_t bytes() const override { return bytes_; }
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size) const override {
    if (offset + size > readable_) return absl::DataLossError("the file is short");
    return Bytes(offset, size);
  }
  static std::string Bytes(uint64_t offset, uint64_t size) {
    std::string bytes;
    for (uint64_t i = offset; i < offset + size; ++i)
      bytes.push_back(static_cast<char>('a' + (i ^ i >> 8) % 26));
    return bytes;
  }

 private:
  const uint64_t bytes_;
  const uint64_t readable_;
};

class HttpContentTest : public ::testing::Test {
 protected:
  void Serve(uint64_t bytes, uint64_t readable) {
    const auto content = std::make_shared<Counted>(bytes, readable);
    HttpRoute route{.path = "/objects/",
                    .handler =
                        [content](const HttpRequest&) {
                          return HttpResponse{.content_type = "application/octet-stream",
                                              .headers = {{"ETag", "\"tag\""}},
                                              .content = content};
                        },
                    .prefix = true};
    endpoint_ = *HttpEndpoint::Start("127.0.0.1", 0, {std::move(route)});
  }
  std::string Ask(const std::string& header, const std::string& method = "GET") {
    return testing::RawClient(endpoint_->port(),
                              absl::StrCat(method, " /objects/one HTTP/1.1\r\n", header, "\r\n"))
        .ReadAll();
  }

  std::unique_ptr<HttpEndpoint> endpoint_;
};

TEST_F(HttpContentTest, SendsAllPieces) {
  constexpr uint64_t kBytes = (3 << 20) + 17;
  Serve(kBytes, kBytes);
  const std::string answer = Ask("");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr(absl::StrCat("Content-Length: ", kBytes, "\r\n")));
  EXPECT_THAT(answer, HasSubstr("Accept-Ranges: bytes\r\n"));
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\n" + Counted::Bytes(0, kBytes)));
}

TEST_F(HttpContentTest, SendsARange) {
  Serve(1000, 1000);
  const std::string answer = Ask("Range: bytes=100-199\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 206 Partial Content\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Range: bytes 100-199/1000\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 100\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n" + Counted::Bytes(100, 100)));
}

TEST_F(HttpContentTest, RefusesARangeBehindTheEnd) {
  Serve(1000, 1000);
  const std::string answer = Ask("Range: bytes=1000-\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 416 Range Not Satisfiable\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Range: bytes */1000\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpContentTest, SaysThatTheClientHasIt) {
  Serve(1000, 0);
  const std::string answer = Ask("If-None-Match: \"tag\"\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 304 Not Modified\r\n"));
  EXPECT_THAT(answer, HasSubstr("ETag: \"tag\"\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpContentTest, ReadsNothingForHead) {
  Serve(1000, 0);
  const std::string answer = Ask("", "HEAD");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 1000\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

// The client sees fewer bytes than Content-Length, and so a failure.
TEST_F(HttpContentTest, EndsTheConnectionWhereTheContentCannotBeRead) {
  constexpr uint64_t kBytes = 1 << 20;
  Serve(kBytes, kBytes / 2);
  const std::string answer = Ask("");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_LT(answer.size(), kBytes);
}

TEST_F(HttpContentTest, LeavesOtherPathsAlone) {
  Serve(1000, 1000);
  EXPECT_THAT(testing::RawClient(endpoint_->port(), "GET /object HTTP/1.1\r\n\r\n").ReadAll(),
              StartsWith("HTTP/1.1 404"));
}

}  // namespace
}  // namespace distro
