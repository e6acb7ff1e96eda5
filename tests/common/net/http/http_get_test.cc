#include "common/net/http/http_get.h"

#include "absl/strings/str_cat.h"
#include "common/net/http/http_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/net/http/raw_client.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(30);

class HttpGetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto endpoint = HttpEndpoint::Start(
        "127.0.0.1", 0, {{"/", [](const HttpRequest& request) {
                            return HttpResponse{503, "text/x", request.query.at("a")};
                          }}});
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
    address_ = absl::StrCat("127.0.0.1:", endpoint_->port());
  }
  std::unique_ptr<HttpEndpoint> endpoint_;
  std::string address_;
};

TEST_F(HttpGetTest, ReturnsWhatWasAnswered) {
  const auto text = HttpGet(address_, "/?a=b%20c", kTimeout, 3);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->status, 503);
  EXPECT_EQ(text->content_type, "text/x");
  EXPECT_EQ(text->body, "b c");
}

TEST_F(HttpGetTest, RefusesAnAnswerAboveItsLimit) {
  const auto text = HttpGet(address_, "/?a=12345", kTimeout, 4);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr(address_));
}

TEST_F(HttpGetTest, TakesAnAnswerOfItsLimit) {
  const auto text = HttpGet(address_, "/?a=1234", kTimeout, 4);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->body, "1234");
}

TEST_F(HttpGetTest, NamesTheAddressWhereNobodyListens) {
  endpoint_ = nullptr;
  const auto text = HttpGet(address_, "/", kTimeout, 4);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr(address_));
}

TEST_F(HttpGetTest, EndsWithoutAnAnswerInTime) {
  testing::RawClient silent("127.0.0.1");
  const int port = silent.Listen();
  const auto text = HttpGet(absl::StrCat("127.0.0.1:", port), "/", absl::Milliseconds(20), 4);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(HttpGetTest, WantsHostAndPort) {
  EXPECT_EQ(HttpGet("nowhere", "/", kTimeout, 4).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro
