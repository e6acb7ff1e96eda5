#include "common/base/address.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(HostPortTest, SplitsHostAndPort) {
  EXPECT_EQ(ParseHostPort("127.0.0.1:7700")->host, "127.0.0.1");
  EXPECT_EQ(ParseHostPort("127.0.0.1:7700")->port, 7700);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseHostPort("[::1]:0")->port, 0);
}

TEST(HostPortTest, RefusesWhatIsNotAnAddress) {
  for (const char* text :
       {"", "host", ":1", "host:", "host:-1", "host:65536", "host:x", "::1:80"}) {
    EXPECT_EQ(ParseHostPort(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace distro
