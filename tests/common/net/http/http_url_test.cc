#include "common/net/http/http_url.h"

#include "gtest/gtest.h"

namespace distro {
namespace {

std::string Parsed(absl::string_view url) {
  const absl::StatusOr<HttpUrl> parsed = ParseHttpUrl(url);
  return parsed.ok() ? parsed->Text() : "refused";
}

TEST(HttpUrlTest, FillsInThePort) {
  EXPECT_EQ(Parsed("http://mirror.example"), "http://mirror.example:80");
  EXPECT_EQ(Parsed("https://mirror.example/"), "https://mirror.example:443");
  EXPECT_EQ(Parsed("https://[::1]/a"), "https://[::1]:443/a");
}

TEST(HttpUrlTest, KeepsPortAndPath) {
  EXPECT_EQ(Parsed("http://10.0.0.1:8080/some/path/"), "http://10.0.0.1:8080/some/path");
  EXPECT_EQ(Parsed("http://[2001:db8::1]:81"), "http://[2001:db8::1]:81");
  EXPECT_EQ(Parsed("http://host//a///"), "http://host:80//a");
}

TEST(HttpUrlTest, RefusesOthers) {
  for (const char* url : {"", "mirror.example", "ftp://mirror.example", "http://", "http:///path",
                          "http://host:0", "http://host:65536", "http://host:x", "http://user@host",
                          "http://host/?query", "http://host/#part", "http://host/a b",
                          "http://host/\r\nHost: x", "https:/host", "http://::1/", "HTTP://host"}) {
    EXPECT_EQ(Parsed(url), "refused") << url;
    EXPECT_EQ(ParseHttpUrl(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

}  // namespace
}  // namespace distro
