#include "common/net/dns/look_up.h"

#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using Found = absl::StatusOr<std::vector<SocketAddress>>;

std::vector<std::string> Texts(const std::vector<SocketAddress>& addresses) {
  std::vector<std::string> texts;
  for (const SocketAddress& each : addresses) texts.push_back(each.Text());
  return texts;
}

TEST(LookUpTest, AsksNoResolverAboutALiteral) {
  for (const std::string literal : {"127.0.0.1", "::1", "2001:db8::1"}) {
    LookUp look_up(literal, 80, [](const std::string&, int) -> Found {
      ADD_FAILURE() << "it was asked";
      return absl::UnavailableError("asked");
    });
    ASSERT_TRUE(look_up.WaitFor(absl::ZeroDuration()));
    ASSERT_TRUE(look_up.result().ok()) << look_up.result().status();
    EXPECT_THAT(Texts(*look_up.result()), ::testing::ElementsAre(literal));
  }
}

TEST(LookUpTest, KeepsTheOrderOfTheResolver) {
  LookUp look_up("some.name", 80, [](const std::string& host, int port) -> Found {
    EXPECT_EQ(host, "some.name");
    std::vector<SocketAddress> found;
    for (const char* literal : {"192.0.2.2", "2001:db8::1", "192.0.2.1"})
      found.push_back(LookUp(literal, port).result()->front());
    return found;
  });
  ASSERT_TRUE(look_up.WaitFor(absl::InfiniteDuration()));
  ASSERT_TRUE(look_up.result().ok()) << look_up.result().status();
  EXPECT_THAT(Texts(*look_up.result()),
              ::testing::ElementsAre("192.0.2.2", "2001:db8::1", "192.0.2.1"));
}

TEST(LookUpTest, EndsWithTheErrorOfTheResolver) {
  LookUp look_up("some.name", 80, [](const std::string&, int) -> Found {
    return absl::UnavailableError("no such name");
  });
  ASSERT_TRUE(look_up.WaitFor(absl::InfiniteDuration()));
  EXPECT_EQ(look_up.result().status(), absl::UnavailableError("no such name"));
}

// A resolver that waits for a silent DNS server holds neither who waits for it nor who drops it.
TEST(LookUpTest, LeavesASilentResolverBehind) {
  const auto released = std::make_shared<absl::Notification>();
  const auto release = absl::MakeCleanup([&] { released->Notify(); });
  LookUp look_up("some.name", 80, [released](const std::string&, int) -> Found {
    released->WaitForNotification();
    return absl::UnavailableError("late");
  });
  EXPECT_FALSE(look_up.WaitFor(absl::Milliseconds(1)));
}

}  // namespace
}  // namespace distro
