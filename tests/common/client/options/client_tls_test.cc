#include "common/client/options/client_tls.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/client/options/invite.h"
#include "common/net/security/dev_certificates.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClientTlsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(folder_.File(name), text).ok());
    return folder_.File(name);
  }
  std::string WriteInvite(const std::string& ca) {
    return Write("w2.invite", InviteText({.aggregator = "aggregator.example:7700",
                                          .name = "w2",
                                          .role = "worker",
                                          .token = token_,
                                          .ca = ca}));
  }
  testing::ScratchFolder folder_;
  const std::string token_ = std::string(43, 't');
};

void ExpectNames(const absl::Status& status, StatusCode code, const std::string& flag,
                 const std::string& file) {
  EXPECT_EQ(status.code(), code);
  EXPECT_THAT(std::string(status.message()), AllOf(StartsWith(flag), HasSubstr(file)));
}

TEST_F(ClientTlsTest, TakesInviteWithoutCa) {
  const ClientTls tls = {.invite = WriteInvite("")};
  const auto read = ReadClientTls(tls);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->files.ca, "");
  EXPECT_EQ(ReadClientToken(tls).value_or(""), token_);
}

TEST_F(ClientTlsTest, BlamesInviteForItsFaults) {
  const ClientTls missing = {.invite = folder_.File("none.invite")};
  ExpectNames(ReadClientTls(missing).status(), StatusCode::kNotFound, "--invite: ", "none.invite");
  ExpectNames(ReadClientToken(missing).status(), StatusCode::kNotFound,
              "--invite: ", "none.invite");
  const ClientTls no_ca = {.invite = WriteInvite(std::string(kBeginCertificate) + "\nMIIB\n")};
  ExpectNames(ReadClientTls(no_ca).status(), StatusCode::kInvalidArgument,
              "--invite: ", "w2.invite");
}

// As Notepad saves them.
TEST_F(ClientTlsTest, FilesMayHaveAByteOrderMarkAndCarriageReturns) {
  const KeyedCertificate ca = *MakeCa({absl::Now(), absl::Hours(1)});
  const auto edited = [](const std::string& text) {
    return "\xEF\xBB\xBF" + absl::StrReplaceAll(text, {{"\n", "\r\n"}});
  };
  const ClientTls files = {.ca = Write("ca.pem", edited(ca.cert)),
                           .token_file = Write("token", edited(token_ + "\n"))};
  const auto read = ReadClientTls(files);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ReadClientToken(files).value_or(""), token_);
  const ClientTls invite = {.invite = Write("w3.invite", edited(*ReadFile(WriteInvite(ca.cert))))};
  ASSERT_TRUE(ReadClientTls(invite).ok()) << ReadClientTls(invite).status();
  EXPECT_EQ(ReadClientToken(invite).value_or(""), token_);
}

TEST_F(ClientTlsTest, NamesFlagOfBadFile) {
  const ClientTls tls = {.ca = Write("ca.pem", "hello"), .token_file = folder_.File("none.token")};
  ExpectNames(ReadClientTls(tls).status(), StatusCode::kInvalidArgument,
              "--ca, --cert, --key: ", "ca.pem");
  ExpectNames(ReadClientToken(tls).status(), StatusCode::kNotFound, "--token_file: ", "none.token");
}

}  // namespace
}  // namespace distro
