#include "tools/archiver/options.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

}  // namespace
}  // namespace distro::tools
