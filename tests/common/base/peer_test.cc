#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "common/base/address.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

sockaddr_storage V4(const char* address, uint16_t port) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, address, &v4.sin_addr), 1);
  sockaddr_storage storage = {};
  std::memcpy(&storage, &v4, sizeof(v4));
  return storage;
}

sockaddr_storage V6(const char* address, uint16_t port, uint32_t scope = 0) {
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_scope_id = scope;
  EXPECT_EQ(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
  sockaddr_storage storage = {};
  std::memcpy(&storage, &v6, sizeof(v6));
  return storage;
}

TEST(PeerTest, KeepsWholeIpv4Address) {
  const Peer peer = PeerOf(V4("192.0.2.7", 4567));
  EXPECT_EQ(peer.endpoint, "192.0.2.7:4567");
  EXPECT_EQ(peer.address, "192.0.2.7");
}

TEST(PeerTest, CutsIpv6ToNetwork) {
  const Peer one = PeerOf(V6("2001:db8:1:2:3::4", 80));
  const Peer two = PeerOf(V6("2001:db8:1:2:ffff::9", 81));
  const Peer other = PeerOf(V6("2001:db8:1:3:3::4", 80));
  EXPECT_EQ(one.endpoint, "[2001:db8:1:2:3::4]:80");
  EXPECT_EQ(one.address, "2001:db8:1:2::/64");
  EXPECT_EQ(two.address, one.address);
  EXPECT_NE(other.address, one.address);
}

TEST(PeerTest, Ipv4InsideIpv6IsIpv4) {
  const Peer peer = PeerOf(V6("::ffff:192.0.2.7", 4567));
  EXPECT_EQ(peer.endpoint, "192.0.2.7:4567");
  EXPECT_EQ(peer.address, "192.0.2.7");
}

TEST(PeerTest, IgnoresOtherFamilies) {
  sockaddr_storage storage = {};
  storage.ss_family = AF_UNIX;
  EXPECT_EQ(PeerOf(storage).endpoint, "");
  EXPECT_EQ(PeerOf(storage).address, "");
}

TEST(PeerTest, GrpcNamesTheSameEndpoint) {
  EXPECT_EQ(EndpointOfGrpcPeer("ipv4:192.0.2.7:4567"), PeerOf(V4("192.0.2.7", 4567)).endpoint);
  EXPECT_EQ(EndpointOfGrpcPeer("ipv6:%5B2001:db8::1%5D:80"),
            PeerOf(V6("2001:db8::1", 80)).endpoint);
  EXPECT_EQ(EndpointOfGrpcPeer("ipv6:[2001:db8::1]:80"), "[2001:db8::1]:80");
  EXPECT_EQ(EndpointOfGrpcPeer("ipv6:%5Bfe80::1%25eth0%5D:80"),
            PeerOf(V6("fe80::1", 80, 2)).endpoint);
}

TEST(PeerTest, IgnoresGrpcPeersWithoutIp) {
  for (const std::string uri : {"", "unix:", "unix:/tmp/x", "ipv", "ipv6", "tcp:192.0.2.7:1"})
    EXPECT_EQ(EndpointOfGrpcPeer(uri), "") << uri;
  for (const std::string uri : {"ipv6:%", "ipv6:%25", "ipv6:]%[", "ipv6:%5D%25%5B"})
    (void)EndpointOfGrpcPeer(uri);
}

}  // namespace
}  // namespace distro
