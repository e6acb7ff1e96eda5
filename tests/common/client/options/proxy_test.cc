#include "common/client/options/proxy.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(ProxyTest, ExceptionsAreNamesAddressesNetworksAndAll) {
  struct Case {
    const char* host;
    const char* exceptions;
    bool matches;
  };
  const Case cases[] = {{"a.example", "*", true},
                        {"a.example", "b.example,a.example", true},
                        {"a.example", " b.example , a.example ", true},
                        {"A.Example", "a.example", true},
                        {"a.example", ".example", true},
                        {"a.example", "*.example", true},
                        {"example", ".example", true},
                        {"a.example:1", "a.example", false},
                        {"a.example", "a.example:7700", true},
                        {"a.example", "other", false},
                        {"a.example", "", false},
                        {"a.example", ",,:", false},
                        {"127.0.0.1", "127.0.0.1", true},
                        {"127.0.0.1", "127.0.0.0/8", true},
                        {"128.0.0.1", "127.0.0.0/8", false},
                        {"10.1.2.3", "10.1.2.0/23", true},
                        {"10.1.4.3", "10.1.2.0/23", false},
                        {"10.1.2.3", "0.0.0.0/0", true},
                        {"10.1.2.3", "10.1.2.0/33", false},
                        {"10.1.2.3", "10.1.2.0/x", false},
                        {"a.example", "10.0.0.0/8", false},
                        {"::1", "::1", true},
                        {"::1", "[::1]:7700", true},
                        {"0:0::1", "::1", true},
                        {"2001:db8::5", "2001:db8::/32", true},
                        {"2001:db9::5", "2001:db8::/32", false},
                        {"::1", "127.0.0.0/8", false}};
  for (const Case& c : cases)
    EXPECT_EQ(IsException(c.host, c.exceptions), c.matches) << c.host << " in " << c.exceptions;
}

class ProxyForTest : public ::testing::Test {
 protected:
  ~ProxyForTest() override {
    for (const char* variable :
         {"grpc_proxy", "https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy", "NO_PROXY"})
      unsetenv(variable);
  }
};

std::optional<Proxy> Found(const std::string& host) { return ProxyFor(host).value(); }

TEST_F(ProxyForTest, NamesTheVariableAndTheProxyWithoutCredentials) {
  EXPECT_FALSE(Found("a.example"));
  setenv("http_proxy", "http://proxy.example:1", 1);
  EXPECT_EQ(Found("a.example")->variable, "http_proxy");
  setenv("https_proxy", "HTTP://user:secret@proxy.example:3128", 1);
  const auto proxy = Found("a.example");
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->variable, "https_proxy");
  EXPECT_EQ(proxy->url, "HTTP://proxy.example:3128");
  EXPECT_EQ(proxy->uri, "http://user:secret@proxy.example:3128");
  setenv("grpc_proxy", "", 1);
  EXPECT_FALSE(Found("a.example")) << "set to none";
}

// curl, pip and apt take it in this form.
TEST_F(ProxyForTest, WithoutSchemeIsHttp) {
  setenv("https_proxy", "user:secret@proxy.example:3128", 1);
  EXPECT_EQ(Found("a.example")->uri, "http://user:secret@proxy.example:3128");
  EXPECT_EQ(Found("a.example")->url, "proxy.example:3128");
}

TEST_F(ProxyForTest, RefusesWhatCallsWouldIgnore) {
  for (const char* url :
       {"https://user:secret@proxy.example:3128", "socks5://user:secret@proxy.example:3128",
        "http://user:secr@et@proxy.example:3128", "user:secr%40et@proxy.example:3128"}) {
    setenv("https_proxy", url, 1);
    const absl::Status status = ProxyFor("a.example").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(::testing::HasSubstr("https_proxy: "),
                                 ::testing::HasSubstr("proxy.example:3128: "),
                                 ::testing::Not(::testing::HasSubstr("secr"))))
        << url;
  }
  setenv("no_proxy", "a.example", 1);
  EXPECT_FALSE(Found("a.example"));
}

TEST_F(ProxyForTest, ReadsFirstExceptionList) {
  setenv("https_proxy", "http://proxy.example:3128", 1);
  setenv("NO_PROXY", "10.0.0.0/8", 1);
  EXPECT_FALSE(Found("10.1.2.3"));
  setenv("no_proxy", "a.example", 1);
  EXPECT_TRUE(Found("10.1.2.3"));
  EXPECT_FALSE(Found("a.example"));
}

}  // namespace
}  // namespace distro
