#include "common/rpc/channel.h"

#include <gtest/gtest.h>

#include <string>

namespace distro {
namespace {

TEST(ParseAggregatorUrlTest, TakesHostAndPortWithOrWithoutScheme) {
  for (const char* url :
       {"host:7700", "grpc://host:7700", "http://host:7700", "http://host:7700/"}) {
    EXPECT_EQ(ParseAggregatorUrl(url).value_or("refused"), "host:7700") << url;
  }
  EXPECT_EQ(ParseAggregatorUrl("[::1]:7700").value_or("refused"), "[::1]:7700");
}

TEST(ParseAggregatorUrlTest, RefusesWhatIsNoAddress) {
  for (const char* url : {"", "host", ":7700", "host:", "host:0", "host:65536", "host:x",
                          "https://host:7700", "host:7700/path", "::1:7700", "unix:/tmp/socket"}) {
    EXPECT_EQ(ParseAggregatorUrl(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

TEST(OpenChannelTest, RefusesPlaintextThatWasNotAskedFor) {
  EXPECT_EQ(OpenChannel({"localhost:7700", false}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(OpenChannel({"localhost:7700", true}).ok());
}

}  // namespace
}  // namespace distro
