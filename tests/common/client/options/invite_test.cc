#include "common/client/options/invite.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCa[] =
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n";

Invite Full() {
  return {.aggregator = "aggregator.example:7700",
          .name = "w2",
          .role = "worker",
          .token = std::string(43, 't'),
          .run = "demo",
          .data_fingerprint = std::string(64, 'a'),
          .expires = absl::FromUnixSeconds(1800000000),
          .ca = kCa};
}

void ExpectBad(const std::string& text, const std::string& message) {
  const auto invite = ParseInvite(text);
  EXPECT_EQ(invite.status().code(), StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(invite.status().message()), HasSubstr(message));
  EXPECT_THAT(std::string(invite.status().message()), Not(HasSubstr("tttt")))
      << "a token is nobody's business";
}

std::string Without(const std::string& line) {
  return absl::StrReplaceAll(InviteText(Full()), {{line + "\n", ""}});
}

TEST(InviteTest, IsReadBackAsItWasWritten) {
  Invite least = Full();
  least.run.clear();
  least.data_fingerprint.clear();
  least.ca.clear();
  least.expires = absl::InfiniteFuture();
  for (const Invite& invite : {Full(), least}) {
    const auto read = ParseInvite(InviteText(invite));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == invite);
  }
}

// Sent by mail, edited on another system.
TEST(InviteTest, BlankLinesSpacesAndCarriageReturnsDoNotMatter) {
  const std::string text =
      absl::StrReplaceAll(InviteText(Full()), {{"\nname w2", "\r\n\n  name   w2 "}});
  const auto read = ParseInvite(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == Full());
}

TEST(InviteTest, NamesWhatIsWrong) {
  ExpectBad("", "first line is not `distro-invite 1`");
  ExpectBad(absl::StrReplaceAll(InviteText(Full()), {{"distro-invite 1", "distro-invite 2"}}),
            "first line");
  ExpectBad(Without("aggregator aggregator.example:7700"), "aggregator: is missing");
  ExpectBad(Without("name w2"), "name: is missing");
  ExpectBad(Without("role worker"), "role: is missing");
  ExpectBad(Without("token " + std::string(43, 't')), "token: is missing");
  const auto with = [](const std::string& from, const std::string& to) {
    return absl::StrReplaceAll(InviteText(Full()), {{from, to}});
  };
  ExpectBad(with("name w2", "name W2"), "name:");
  ExpectBad(with("role worker", "role king"), "role: is none of");
  ExpectBad(with("token ttt", "token t"), "token: is not 43 characters");
  ExpectBad(with("run demo", "run de/mo"), "run:");
  ExpectBad(with("2027-01-15", "2027-13-15"), "expires: is no time");
  ExpectBad(with("name w2", "name w2\nname w2"), "line 4: name is there twice");
  ExpectBad(with("name w2", "nome w2"), "line 3: is unknown: the invite is damaged");
  ExpectBad(with("name w2", "name"), "line 3: name has an invalid value");
  ExpectBad(with("name w2", "name " + std::string(300, 'w')), "line 3: name has an invalid value");
  ExpectBad(with("demo", "de\x01mo"), "line 6: run has an invalid value");
}

TEST(InviteTest, DamagedAnywhereItIsReadOrRefused) {
  const std::string text = InviteText(Full());
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_THAT(ParseInvite(text.substr(0, i)).status().code(),
                ::testing::AnyOf(StatusCode::kInvalidArgument, StatusCode::kOk));
    for (const int flip : {0x01, 0x20, 0x80}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto read = ParseInvite(damaged);
      if (read.ok()) {
        EXPECT_TRUE(*ParseInvite(InviteText(*read)) == *read) << i;
      } else {
        EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << i;
      }
    }
  }
}

class TakeInviteTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(channel_.tls.invite, text).ok());
  }
  testing::ScratchFolder folder_;
  ChannelOptions channel_ = {.aggregator = "", .tls = {.invite = folder_.File("w2.invite")}};
  const absl::Time before_ = absl::FromUnixSeconds(1800000000);
};

TEST_F(TakeInviteTest, GivesTheAddressUnlessAnotherIsGiven) {
  Write(InviteText(Full()));
  const auto invite = TakeInvite(&channel_, before_);
  ASSERT_TRUE(invite.ok()) << invite.status();
  EXPECT_TRUE(**invite == Full());
  EXPECT_EQ(channel_.aggregator, "aggregator.example:7700");
  channel_.aggregator = "10.0.0.1:7700";
  ASSERT_TRUE(TakeInvite(&channel_, before_).ok());
  EXPECT_EQ(channel_.aggregator, "10.0.0.1:7700");
}

TEST_F(TakeInviteTest, SaysWhenInviteExpired) {
  Write(InviteText(Full()));
  const absl::Status status = TakeInvite(&channel_, before_ + absl::Seconds(1)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expired at 2027-01-15T08:00:00Z"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("distroctl invite"));
}

TEST_F(TakeInviteTest, WithoutOneNothingHappens) {
  channel_.tls.invite.clear();
  const auto invite = TakeInvite(&channel_, before_);
  ASSERT_TRUE(invite.ok());
  EXPECT_FALSE(invite->has_value());
}

TEST_F(TakeInviteTest, NamesMissingOrForeignFile) {
  EXPECT_EQ(TakeInvite(&channel_, before_).status().code(), StatusCode::kNotFound);
  Write("hello\n");
  const absl::Status status = TakeInvite(&channel_, before_).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--invite: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("w2.invite"));
}

}  // namespace
}  // namespace distro
