#include "server/connections/connection_table.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kKiB = 1 << 10;

Peer From(const std::string& address, int port) {
  return {.endpoint = absl::StrCat(address, ":", port), .address = address};
}

// Limits that a test can count.
ConnectionLimits Small() {
  ConnectionLimits limits;
  limits.connections = 12;
  limits.anonymous = 6;
  limits.anonymous_of_address = 3;
  limits.of_credential = 2;
  limits.calls_per_second = 10;
  limits.calls_burst = 80;
  limits.overhead_bytes_per_second = 1 * kKiB;
  limits.overhead_burst = 64 * kKiB;
  return limits;
}

class ConnectionTableTest : public ::testing::Test {
 protected:
  ConnectionId Come(const std::string& address, int port) {
    const ConnectionTable::Admission admission = table_.Admit(From(address, port), now_);
    EXPECT_FALSE(admission.refused) << address << ":" << port;
    return admission.id;
  }
  void Show(const std::string& address, int port, const std::string& credential) {
    table_.OnCall(From(address, port).endpoint, credential, now_);
  }
  // "id reason" of the connections that the table closed.
  std::vector<std::string> Ended() {
    std::vector<std::string> ended;
    for (const EndedConnection& connection : table_.TakeEnded(now_))
      ended.push_back(absl::StrCat(connection.id, " ", ConnectionEndName(connection.why)));
    return ended;
  }
  uint64_t Count(ConnectionEnd why) { return table_.ends()[static_cast<size_t>(why)]; }

  explicit ConnectionTableTest(const ConnectionLimits& limits = Small()) : table_(limits) {}

  absl::Duration now_ = absl::Seconds(1000);
  ConnectionTable table_;
};

class DefaultLimitsTest : public ConnectionTableTest {
 protected:
  DefaultLimitsTest() : ConnectionTableTest(ConnectionLimits()) {}
};

TEST_F(ConnectionTableTest, AuthenticatesByCredential) {
  Come("a", 1);
  EXPECT_EQ(table_.anonymous(), 1);
  Show("a", 1, "worker w");
  EXPECT_EQ(table_.anonymous(), 0);
  EXPECT_EQ(table_.authenticated(), 1);
}

TEST_F(ConnectionTableTest, CountsClosedConnectionDown) {
  const ConnectionId one = Come("a", 1);
  const ConnectionId two = Come("a", 2);
  Show("a", 2, "worker w");
  table_.Closed(one);
  table_.Closed(two);
  table_.Closed(two);
  EXPECT_EQ(table_.anonymous(), 0);
  EXPECT_EQ(table_.authenticated(), 0);
  EXPECT_THAT(Ended(), IsEmpty());
  for (const uint64_t count : table_.ends()) EXPECT_EQ(count, 0);
}

TEST_F(ConnectionTableTest, TakesPortAgainBeforeClose) {
  const ConnectionId old = Come("a", 1);
  const ConnectionId anew = Come("a", 1);
  EXPECT_EQ(table_.anonymous(), 1);
  table_.Closed(old);
  EXPECT_EQ(table_.anonymous(), 1);
  Show("a", 1, "worker w");
  EXPECT_EQ(table_.authenticated(), 1);
  table_.Closed(anew);
  EXPECT_EQ(table_.authenticated(), 0);
}

TEST_F(ConnectionTableTest, EndsAnonymousAfterTimeout) {
  const ConnectionId id = Come("a", 1);
  now_ += absl::Seconds(9);
  Come("b", 1);
  EXPECT_THAT(Ended(), IsEmpty());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " no_credential")));
  EXPECT_THAT(Ended(), IsEmpty());
  EXPECT_EQ(Count(ConnectionEnd::kNoCredential), 1);
}

TEST_F(ConnectionTableTest, EndsAnonymousThatSendsMuch) {
  const ConnectionId id = Come("a", 1);
  EXPECT_TRUE(table_.Observe(id, {.received = 32 * kKiB}, now_));
  EXPECT_THAT(Ended(), IsEmpty());
  EXPECT_FALSE(table_.Observe(id, {.received = 32 * kKiB + 1}, now_));
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " anonymous_bytes")));
}

TEST_F(ConnectionTableTest, WithACredentialTimeAndBytesOfMessagesAreFree) {
  const ConnectionId id = Come("a", 1);
  Show("a", 1, "worker w");
  for (int i = 1; i <= 1000; ++i) {
    now_ += absl::Milliseconds(10);
    table_.OnMessage("a:1", 512 * kKiB);
    table_.Observe(id, {.received = i * 513 * kKiB}, now_);
  }
  EXPECT_THAT(Ended(), IsEmpty());
}

TEST_F(ConnectionTableTest, EndsOldestOfFullAddress) {
  const ConnectionId first = Come("a", 1);
  Come("b", 1);
  Come("a", 2);
  Come("a", 3);
  EXPECT_THAT(Ended(), IsEmpty());
  Come("a", 4);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(first, " made_room")));
  EXPECT_EQ(table_.anonymous(), 4);
}

TEST_F(ConnectionTableTest, EndsOldestOfBusiestAddress) {
  Come("a", 1);
  const ConnectionId first_of_b = Come("b", 1);
  Come("b", 2);
  Come("b", 3);
  Come("c", 1);
  Come("d", 1);
  EXPECT_THAT(Ended(), IsEmpty());
  Come("e", 1);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(first_of_b, " made_room")));
}

TEST_F(ConnectionTableTest, EndsOldestOfCredential) {
  const ConnectionId first = Come("a", 1);
  Show("a", 1, "worker w");
  Come("a", 2);
  Show("a", 2, "worker w");
  Come("b", 3);
  Show("b", 3, "worker v");
  EXPECT_THAT(Ended(), IsEmpty());
  Come("b", 4);
  Show("b", 4, "worker w");
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(first, " newer_of_credential")));
  EXPECT_EQ(table_.authenticated(), 3);
}

TEST_F(ConnectionTableTest, MoreThanTheProcessCanHoldAreRefused) {
  for (int i = 0; i < 12; ++i) {
    Come("a", i);
    Show("a", i, absl::StrCat("worker ", i));
  }
  EXPECT_EQ(table_.Admit(From("a", 12), now_).refused, ConnectionEnd::kFull);
  EXPECT_EQ(Count(ConnectionEnd::kFull), 1);
}

// 256 KiB at once and 32 KiB a second, 4 KiB a connection.
TEST_F(DefaultLimitsTest, LimitsAnonymousConnectionsOfAddress) {
  int admitted = 0;
  const auto come = [&] { return !table_.Admit(From("a", ++admitted), now_).refused; };
  while (come()) {
  }
  EXPECT_EQ(admitted - 1, 64);
  EXPECT_EQ(Count(ConnectionEnd::kRate), 1);
  now_ += absl::Seconds(1);
  int later = 0;
  while (come()) ++later;
  EXPECT_EQ(later, 8);
  EXPECT_FALSE(table_.Admit(From("b", 1), now_).refused);
}

TEST_F(DefaultLimitsTest, ChargesBytesOfAnonymous) {
  for (int i = 0; i < 40; ++i) {
    const ConnectionTable::Admission admission = table_.Admit(From("a", i), now_);
    if (admission.refused) {
      EXPECT_EQ(i, 16);
      return;
    }
    table_.Observe(admission.id, {.received = 16 * kKiB}, now_);
  }
  FAIL() << "40 connections with 16 KiB each are more than 256 KiB";
}

TEST_F(DefaultLimitsTest, ChargesLastBytesOfEnded) {
  const ConnectionId id = Come("a", 1);
  for (int i = 0; i < 17; ++i) table_.OnRefusedCall("a:1", now_);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " calls")));
  EXPECT_FALSE(table_.Observe(id, {.received = 300 * kKiB}, now_));
  EXPECT_EQ(table_.Admit(From("a", 2), now_).refused, ConnectionEnd::kRate);
}

TEST_F(DefaultLimitsTest, RefundsOnCredential) {
  for (int i = 0; i < 1000; ++i) {
    const ConnectionId id = Come("a", i);
    Show("a", i, absl::StrCat("worker ", i));
    table_.Closed(id);
  }
}

TEST_F(DefaultLimitsTest, StrangersOfManyAddressesKeepStrangersOutAndNobodyElse) {
  Come("known", 1);
  Show("known", 1, "worker w");
  int port = 0;
  for (int i = 0; i < 200; ++i) (void)table_.Admit(From(absl::StrCat("bot", i), ++port), now_);
  EXPECT_EQ(table_.Admit(From("stranger", 1), now_).refused, ConnectionEnd::kRate);
  EXPECT_FALSE(table_.Admit(From("known", 2), now_).refused);
  now_ += absl::Seconds(2);
  EXPECT_FALSE(table_.Admit(From("stranger", 2), now_).refused);
}

TEST_F(DefaultLimitsTest, RemembersAddressForADay) {
  const ConnectionId id = Come("known", 1);
  Show("known", 1, "worker w");
  table_.Closed(id);
  now_ += absl::Hours(23);
  (void)table_.TakeEnded(now_);
  const auto flood = [this](int first) {
    for (int i = 0; i < 200; ++i) (void)table_.Admit(From(absl::StrCat("bot", first + i), 1), now_);
  };
  flood(0);
  EXPECT_EQ(table_.Admit(From("stranger", 1), now_).refused, ConnectionEnd::kRate);
  EXPECT_FALSE(table_.Admit(From("known", 2), now_).refused);
  now_ += absl::Hours(2);
  (void)table_.TakeEnded(now_);
  flood(1000);
  EXPECT_EQ(table_.Admit(From("known", 3), now_).refused, ConnectionEnd::kRate);
}

// A day of normal traffic earns no credit for a flood of headers.
TEST_F(ConnectionTableTest, SavesNoCreditUp) {
  const ConnectionId id = Come("a", 1);
  Show("a", 1, "archiver x");
  table_.Observe(id, {.received = 1 * kKiB, .acknowledged = 1'000'000'000 * kKiB}, now_);
  table_.Observe(id, {.received = 66 * kKiB, .acknowledged = 1'000'000'000 * kKiB}, now_);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " overhead")));
}

TEST_F(ConnectionTableTest, MoreCallsThanTheRateEndAConnection) {
  const ConnectionId id = Come("a", 1);
  for (int i = 0; i < 60; ++i) Show("a", 1, "worker w");  // and 20 for the connection
  EXPECT_THAT(Ended(), IsEmpty());
  Show("a", 1, "worker w");
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " calls")));
}

TEST_F(ConnectionTableTest, RemembersRateOfCredential) {
  Come("a", 1);
  for (int i = 0; i < 61; ++i) Show("a", 1, "worker w");
  const ConnectionId second = Come("a", 2);
  Show("a", 2, "worker w");
  EXPECT_EQ(Ended().back(), absl::StrCat(second, " calls"));
  now_ += absl::Seconds(30);
  Come("a", 3);
  Show("a", 3, "worker w");
  EXPECT_THAT(Ended(), IsEmpty());
}

TEST_F(ConnectionTableTest, RefusedCallsEndAnAnonymousConnection) {
  const ConnectionId id = Come("a", 1);
  for (int i = 0; i < 16; ++i) table_.OnRefusedCall("a:1", now_);
  EXPECT_THAT(Ended(), IsEmpty());
  table_.OnRefusedCall("a:1", now_);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " calls")));
}

TEST_F(ConnectionTableTest, RefusedCallsOnAConnectionWithACredentialAreCallsOfIt) {
  const ConnectionId id = Come("a", 1);
  Show("a", 1, "worker w");
  for (int i = 0; i < 59; ++i) table_.OnRefusedCall("a:1", now_);
  EXPECT_THAT(Ended(), IsEmpty());
  table_.OnRefusedCall("a:1", now_);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " calls")));
}

TEST_F(ConnectionTableTest, WakesOwner) {
  int woken = 0;
  table_.SetWake([&woken] { ++woken; });
  Come("a", 1);
  for (int i = 0; i < 17; ++i) table_.OnRefusedCall("a:1", now_);
  EXPECT_EQ(woken, 1);
  table_.SetWake(nullptr);
  Come("a", 2);
  for (int i = 0; i < 17; ++i) table_.OnRefusedCall("a:2", now_);
  EXPECT_EQ(woken, 1);
}

TEST_F(DefaultLimitsTest, ChargesFurtherConnectionsOfCredential) {
  const ConnectionId id = Come("a", 1);
  Show("a", 1, "worker w");
  table_.Observe(id, {.received = 17'000 * kKiB}, now_);
  int port = 1;
  while (!table_.Admit(From("a", ++port), now_).refused) Show("a", port, "worker w");
  EXPECT_EQ(port, 66);
  EXPECT_EQ(Count(ConnectionEnd::kOverhead), 65);
}

TEST_F(ConnectionTableTest, BytesBeyondMessagesEndAConnection) {
  const ConnectionId id = Come("a", 1);
  Show("a", 1, "worker w");
  table_.Observe(id, {.received = 60 * kKiB}, now_);
  EXPECT_THAT(Ended(), IsEmpty());
  now_ += absl::Seconds(4);
  table_.Observe(id, {.received = 66 * kKiB}, now_);
  EXPECT_THAT(Ended(), IsEmpty());
  table_.Observe(id, {.received = 70 * kKiB}, now_);
  EXPECT_THAT(Ended(), ElementsAre(absl::StrCat(id, " overhead")));
}

TEST_F(ConnectionTableTest, CountsMessageUntilHandled) {
  const ConnectionId id = Come("a", 1);
  Show("a", 1, "worker w");
  for (int i = 1; i <= 100; ++i) {
    table_.Observe(id, {.received = i * 50 * kKiB}, now_);
    table_.OnMessage("a:1", 50 * kKiB);
    table_.Observe(id, {.received = i * 50 * kKiB}, now_);
  }
  EXPECT_THAT(Ended(), IsEmpty());
}

TEST_F(ConnectionTableTest, AcknowledgementsOfWhatWasReadAreNoOverhead) {
  const ConnectionId id = Come("a", 1);
  Show("a", 1, "archiver x");
  table_.Observe(id, {.received = 780 * kKiB, .acknowledged = 400'000 * kKiB}, now_);
  EXPECT_THAT(Ended(), IsEmpty());
}

TEST_F(ConnectionTableTest, WhereNobodyIsAuthenticatedCallsAndOverheadAreFree) {
  const ConnectionId id = Come("a", 1);
  for (int i = 0; i < 1000; ++i) Show("a", 1, "");
  table_.Observe(id, {.received = 1'000'000 * kKiB}, now_);
  EXPECT_THAT(Ended(), IsEmpty());
  EXPECT_EQ(table_.authenticated(), 1);
}

TEST_F(ConnectionTableTest, CallsOfConnectionsThatAreGoneChangeNothing) {
  table_.Closed(Come("a", 1));
  Show("a", 1, "worker w");
  table_.OnMessage("a:1", 5);
  table_.Observe(99, {.received = 1}, now_);
  EXPECT_EQ(table_.authenticated(), 0);
}

TEST(ConnectionLimitsTest, LeaveFilesForTheLogAndForEverythingElse) {
  const ConnectionLimits least = ConnectionLimits::ForOpenFiles(kMinOpenFiles);
  EXPECT_EQ(least.connections, 384);
  EXPECT_EQ(least.anonymous, 128);
  EXPECT_EQ(least.anonymous_of_address, 32);
  EXPECT_EQ(least.address_burst, 128 * kKiB);
  const ConnectionLimits usual = ConnectionLimits::ForOpenFiles(20'000);
  EXPECT_EQ(usual.connections, 9872);
  EXPECT_EQ(usual.anonymous, 512);
  EXPECT_EQ(usual.address_burst, 256 * kKiB);
  EXPECT_EQ(ConnectionLimits::ForOpenFiles(~uint64_t{0}).connections, 8388480);
  EXPECT_EQ(ConnectionLimits::ForOpenFiles(0).connections, 0);
}

}  // namespace
}  // namespace distro::server
