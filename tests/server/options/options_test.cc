#include "server/options/options.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

AggregatorOptions Good() {
  AggregatorOptions options;
  options.data_dir = "data";
  options.insecure = true;
  return options;
}

TEST(OptionsTest, RefusesWhatCannotWorkAndNamesTheFlag) {
  EXPECT_TRUE(Good().Validate().ok());
  const std::pair<const char*, std::function<void(AggregatorOptions*)>> kFaults[] = {
      {"--data_dir", [](AggregatorOptions* o) { o->data_dir = ""; }},
      {"--insecure", [](AggregatorOptions* o) { o->insecure = false; }},
      {"--run and --model", [](AggregatorOptions* o) { o->run = "run.json"; }},
      {"--run and --model", [](AggregatorOptions* o) { o->model = "model"; }},
      {"--listen", [](AggregatorOptions* o) { o->listen = "localhost"; }},
      {"--http", [](AggregatorOptions* o) { o->http = "127.0.0.1:65536"; }},
      {"--objects", [](AggregatorOptions* o) { o->objects = "localhost"; }},
      {"--mirrors", [](AggregatorOptions* o) { o->mirrors = {"http://mirror.example"}; }},
      {"--mirrors",
       [](AggregatorOptions* o) {
         o->objects = "127.0.0.1:7702";
         o->mirrors = {"http://a", "mirror.example"};
       }},
      {"--heartbeat_interval",
       [](AggregatorOptions* o) { o->heartbeat_interval = absl::ZeroDuration(); }},
      {"--lease", [](AggregatorOptions* o) { o->lease = absl::Seconds(5); }},
      {"--lease", [](AggregatorOptions* o) { o->lease = absl::InfiniteDuration(); }},
      {"--suspect_after", [](AggregatorOptions* o) { o->suspect_after = absl::Seconds(2); }},
      {"--lease", [](AggregatorOptions* o) { o->suspect_after = absl::Seconds(30); }},
      {"--drain_grace", [](AggregatorOptions* o) { o->drain_grace = -absl::Seconds(1); }},
      {"--drain_grace", [](AggregatorOptions* o) { o->drain_grace = absl::InfiniteDuration(); }},
  };
  for (const auto& [flag, spoil] : kFaults) {
    AggregatorOptions options = Good();
    spoil(&options);
    const absl::Status status = options.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << flag;
    EXPECT_THAT(std::string(status.message()), HasSubstr(flag));
  }
}

TEST(OptionsTest, WantsTlsOrPlaintextAndNamesTheRemedy) {
  AggregatorOptions tls = Good();
  tls.insecure = false;
  EXPECT_THAT(std::string(tls.Validate().message()), HasSubstr("distroctl certs"));
  tls.cert = "cert";
  EXPECT_THAT(std::string(tls.Validate().message()), HasSubstr("--cert and --key"));
  tls.key = "key";
  EXPECT_THAT(std::string(tls.Validate().message()), HasSubstr("--tokens_file or --ca"));
  for (const auto member : {&AggregatorOptions::ca, &AggregatorOptions::tokens_file}) {
    AggregatorOptions with = tls;
    with.*member = "file";
    EXPECT_TRUE(with.Validate().ok()) << with.Validate();
    with.insecure = true;
    EXPECT_THAT(std::string(with.Validate().message()), HasSubstr("--insecure: contradicts"));
  }
}

TEST(OptionsTest, RefusesLeaseBelowSuspectAfter) {
  AggregatorOptions options = Good();
  EXPECT_EQ(options.SuspectAfter(), absl::Seconds(6));
  options.suspect_after = absl::Seconds(40);
  EXPECT_THAT(std::string(options.Validate().message()),
              HasSubstr("--lease: 30s is not above --suspect_after (40s)"));
}

}  // namespace
}  // namespace distro::server
