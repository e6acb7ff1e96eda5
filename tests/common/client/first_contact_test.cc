#include "common/client/first_contact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/reason.h"
#include "tests/common/client/fake_aggregator.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kMinute = absl::Minutes(1);

class FirstContactTest : public ::testing::Test {
 protected:
  // Nothing listens there any more.
  static std::string ClosedPort() { return FakeAggregator().address(); }

  FirstContact Contact(const std::string& aggregator, absl::Duration timeout) {
    return FirstContact({.aggregator = aggregator, .insecure = true}, timeout, &log_, &clock_);
  }
  // Another call, which fails.
  absl::Status Fail(FirstContact* contact) {
    contact->Begin();
    return contact->Failed(absl::UnavailableError("failed to connect"), [] { return true; });
  }

  std::vector<std::string> lines_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view line) { lines_.emplace_back(line); }};
  testing::FakeClock clock_;
  testing::ScratchFolder folder_;
};

TEST_F(FirstContactTest, WaitsUntilTimeout) {
  FirstContact contact = Contact(ClosedPort(), kMinute);
  EXPECT_EQ(Fail(&contact), absl::OkStatus());
  clock_.Advance(kMinute - absl::Seconds(1));
  EXPECT_EQ(Fail(&contact), absl::OkStatus());
  EXPECT_EQ(contact.Left(), absl::Seconds(1));
  clock_.Advance(absl::Seconds(1));
  const absl::Status end = Fail(&contact);
  EXPECT_EQ(ReasonOf(end), "unreachable");
  EXPECT_THAT(std::string(end.message()),
              StartsWith("not within --connect_timeout 1m: 127.0.0.1:"));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("waiting for the aggregator")));
}

TEST_F(FirstContactTest, WhileItWaitsTheReasonIsSaidEveryMinute) {
  FirstContact contact = Contact(ClosedPort(), absl::InfiniteDuration());
  for (int seconds = 0; seconds <= 150; seconds += 10) {
    EXPECT_EQ(Fail(&contact), absl::OkStatus());
    clock_.Advance(absl::Seconds(10));
  }
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("connection refused"), HasSubstr("connection refused"),
                                  HasSubstr("connection refused")));
}

TEST_F(FirstContactTest, WaitsForeverOnceAnswered) {
  FirstContact contact = Contact(ClosedPort(), kMinute);
  EXPECT_EQ(Fail(&contact), absl::OkStatus());
  contact.Answered();
  clock_.Advance(100 * kMinute);
  EXPECT_EQ(Fail(&contact), absl::OkStatus());
  EXPECT_EQ(contact.Left(), absl::InfiniteDuration());
}

// The aggregator runs but cannot serve the request yet: not a fault of the connection.
TEST_F(FirstContactTest, WaitsForeverWhereItCanConnect) {
  const FakeAggregator aggregator;
  FirstContact contact = Contact(aggregator.address(), kMinute);
  EXPECT_EQ(Fail(&contact), absl::OkStatus());
  clock_.Advance(100 * kMinute);
  EXPECT_EQ(Fail(&contact), absl::OkStatus());
  EXPECT_THAT(lines_.front(), HasSubstr("failed to connect"));
}

TEST_F(FirstContactTest, IsMadeByReason) {
  FirstContact contact = Contact(ClosedPort(), kMinute);
  EXPECT_EQ(contact.Failed(ErrorWithReason(absl::StatusCode::kUnavailable, "draining", ""),
                           [] { return true; }),
            absl::OkStatus());
  clock_.Advance(100 * kMinute);
  EXPECT_EQ(Fail(&contact), absl::OkStatus());
}

TEST_F(FirstContactTest, EndsAtOnceOnFinalFault) {
  const FakeAggregator aggregator;
  ChannelOptions tls = {.aggregator = aggregator.address()};
  tls.tls.token_file = folder_.File("token");
  ASSERT_TRUE(WriteFileAtomically(tls.tls.token_file, std::string(43, 'a')).ok());
  FirstContact contact(tls, kMinute, &log_, &clock_);
  EXPECT_EQ(ReasonOf(Fail(&contact)), "tls_mismatch");
  EXPECT_EQ(ReasonOf(contact.Explained(absl::UnimplementedError(""), [] { return true; })),
            "tls_mismatch");
  contact.Answered();
  EXPECT_EQ(contact.Explained(absl::UnimplementedError("x"), [] { return true; }),
            absl::UnimplementedError("x"));
}

TEST_F(FirstContactTest, GoesOnAfterUnwantedLook) {
  FirstContact contact = Contact(ClosedPort(), kMinute);
  EXPECT_EQ(contact.Failed(absl::UnavailableError(""), [] { return false; }), absl::OkStatus());
}

}  // namespace
}  // namespace distro
