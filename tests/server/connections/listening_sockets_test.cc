#include "server/connections/listening_sockets.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

TEST(ListeningSocketsTest, TakesAFreePort) {
  const auto sockets = ListeningSockets::Open("127.0.0.1", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_GT(sockets->port(), 0);
  EXPECT_EQ(sockets->fds().size(), 1);
}

TEST(ListeningSocketsTest, APortInUseIsUnavailableAndNamed) {
  const auto first = ListeningSockets::Open("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const auto second = ListeningSockets::Open("127.0.0.1", first->port());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(std::to_string(first->port()) + " (Address already in use)"));
}

TEST(ListeningSocketsTest, APortInUseIsUnavailableForAnyAddressToo) {
  const auto first = ListeningSockets::Open("0.0.0.0", 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ListeningSockets::Open("0.0.0.0", first->port()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ListeningSocketsTest, AnAddressOfAnotherMachineIsUnavailable) {
  EXPECT_EQ(ListeningSockets::Open("192.0.2.1", 0).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ListeningSocketsTest, AHostThatNamesNothingIsInvalid) {
  EXPECT_EQ(ListeningSockets::Open("no host", 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ListeningSocketsTest, AnyAddressTakesIpv4) {
  const auto sockets = ListeningSockets::Open("0.0.0.0", 0);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(sockets->port()));
  EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  close(client);
}

}  // namespace
}  // namespace distro::server
