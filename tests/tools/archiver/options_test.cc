#include "tools/archiver/options.h"

#include <functional>

#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/client/options/invite.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::tools {
namespace {

using ::testing::HasSubstr;

ArchiverOptions Good() {
  ArchiverOptions options;
  options.channel.aggregator = "127.0.0.1:7700";
  options.channel.insecure = true;
  options.data_dir = "/data";
  return options;
}

TEST(ArchiverOptionsTest, TakesGoodOnes) {
  const absl::Status status = Good().Validate();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ArchiverOptionsTest, NamesTheFlagThatIsWrong) {
  const std::pair<const char*, std::function<void(ArchiverOptions&)>> kFaults[] = {
      {"--aggregator", [](ArchiverOptions& o) { o.channel.aggregator = ""; }},
      {"--aggregator", [](ArchiverOptions& o) { o.channel.aggregator = "nowhere"; }},
      {"--data_dir", [](ArchiverOptions& o) { o.data_dir = ""; }},
      {"--token_file", [](ArchiverOptions& o) { o.channel.insecure = false; }},
      {"--insecure", [](ArchiverOptions& o) { o.channel.tls.ca = "ca.pem"; }},
      {"--keep", [](ArchiverOptions& o) { o.publish.keep = -1; }},
      {"--threads", [](ArchiverOptions& o) { o.threads = 0; }},
      {"--threads", [](ArchiverOptions& o) { o.threads = 1025; }},
      {"--connect_timeout", [](ArchiverOptions& o) { o.connect_timeout = -absl::Seconds(1); }},
      {"--mirrors",
       [](ArchiverOptions& o) {
         o.mirrors = {"http://m", "none"};
       }},
      {"--http", [](ArchiverOptions& o) { o.http = "nowhere"; }},
  };
  for (const auto& [flag, spoil] : kFaults) {
    ArchiverOptions options = Good();
    spoil(options);
    const absl::Status status = options.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << flag;
    EXPECT_THAT(std::string(status.message()), HasSubstr(flag));
  }
}

TEST(ArchiverOptionsTest, TakesArchiversInvite) {
  const testing::ScratchFolder folder;
  Invite invite = {.aggregator = "aggregator.example:7700",
                   .name = "archiver",
                   .role = "archiver",
                   .token = std::string(43, 't')};
  ArchiverOptions options;
  options.channel.tls.invite = folder.File("archiver.invite");
  ASSERT_TRUE(WriteFileAtomically(options.channel.tls.invite, InviteText(invite)).ok());
  EXPECT_EQ(options.TakeInvite(absl::Now()), absl::OkStatus());
  EXPECT_EQ(options.channel.aggregator, "aggregator.example:7700");
  invite.role = "worker";
  ASSERT_TRUE(WriteFileAtomically(options.channel.tls.invite, InviteText(invite)).ok());
  const absl::Status status = options.TakeInvite(absl::Now());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is for the role worker, and this program is archiver"));
}

}  // namespace
}  // namespace distro::tools
