#include "server/connections/listening_sockets.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback.h"

namespace distro::server {
namespace {

using ::distro::testing::HeldPort;
using ::distro::testing::LoopbackClient;
using ::testing::HasSubstr;

bool HasIpv6() { return ListeningSockets::Open("::1", 0).ok(); }

TEST(ListeningSocketsTest, TakesAFreePort) {
  const auto sockets = ListeningSockets::Open("127.0.0.1", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_GT(sockets->port(), 0);
  EXPECT_EQ(sockets->fds().size(), 1);
}

TEST(ListeningSocketsTest, NamesPortInUse) {
  const auto first = ListeningSockets::Open("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const auto second = ListeningSockets::Open("127.0.0.1", first->port());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(std::to_string(first->port()) + " (Address already in use)"));
}

TEST(ListeningSocketsTest, RefusesUsedPortForAnyAddress) {
  const auto first = ListeningSockets::Open("0.0.0.0", 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ListeningSockets::Open("0.0.0.0", first->port()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ListeningSocketsTest, RefusesAddressOfOtherMachine) {
  EXPECT_EQ(ListeningSockets::Open("192.0.2.1", 0).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ListeningSocketsTest, RefusesInvalidHost) {
  EXPECT_EQ(ListeningSockets::Open("no host", 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ListeningSocketsTest, LeavesIpv6FreeOnIpv4) {
  const auto sockets = ListeningSockets::Open("0.0.0.0", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_TRUE(LoopbackClient().Connect(sockets->port()));
  EXPECT_TRUE(ListeningSockets::Open("::1", sockets->port()).ok() || !HasIpv6());
}

TEST(ListeningSocketsTest, ListensOnBothFamilies) {
  const auto sockets = ListeningSockets::Open("::", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_TRUE(LoopbackClient().Connect(sockets->port()));
  EXPECT_FALSE(ListeningSockets::Open("::1", sockets->port()).ok());
}

// Of the tests' own tool: what a test starts again finds its port free.
TEST(ListeningSocketsTest, OpensHeldPort) {
  const HeldPort held;
  for (int start = 0; start < 3; ++start) {
    {
      const auto sockets = ListeningSockets::Open("127.0.0.1", held.number());
      ASSERT_TRUE(sockets.ok()) << sockets.status();
      EXPECT_TRUE(LoopbackClient().Connect(held.number()));
    }
    EXPECT_FALSE(LoopbackClient().Connect(held.number()));
    EXPECT_FALSE(LoopbackClient().Bind(held.number()));
  }
}

}  // namespace
}  // namespace distro::server
