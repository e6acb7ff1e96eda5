#include "tools/distroctl/invite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/client/options/invite.h"
#include "server/auth/tokens/tokens_file.h"
#include "tests/testing/scratch_folder.h"
#include "tools/distroctl/credentials.h"

namespace distro::tools {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class InviteCommandTest : public ::testing::Test {
 protected:
  InviteOptions Options(const std::string& name = "w2") {
    return {.name = name,
            .aggregator = "aggregator.example:7700",
            .tokens_file = tokens_,
            .out = folder_.File(name + ".invite")};
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat file = {};
    EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
    return file.st_mode & 0777;
  }
  server::TokenTable Table() { return *server::TokenTable::Parse(*ReadFile(tokens_)); }

  testing::ScratchFolder folder_;
  const std::string tokens_ = folder_.File("tokens");
  const absl::Time now_ = absl::FromUnixSeconds(1800000000);
};

TEST_F(InviteCommandTest, OfARunOfAnyDataNamesNone) {
  ASSERT_TRUE(WriteFileAtomically(folder_.File("run.json"),
                                  R"({"name": "demo", "rounds": 5, "sequence_length": 8,
                                      "samples_per_worker": 1, "data_fingerprint": "any"})")
                  .ok());
  InviteOptions options = Options();
  options.run = folder_.File("run.json");
  ASSERT_TRUE(MakeInvite(options, now_).ok());
  const auto invite = ReadInvite(options.out);
  ASSERT_TRUE(invite.ok()) << invite.status();
  EXPECT_EQ(invite->run, "demo");
  EXPECT_EQ(invite->data_fingerprint, "");
}

TEST_F(InviteCommandTest, HasWhatAMachineNeedsAndTheAggregatorKnowsItsToken) {
  ASSERT_TRUE(
      MakeCerts({.out = folder_.File("tls"), .hosts = {"localhost"}, .workers = {}}, now_).ok());
  ASSERT_TRUE(
      WriteFileAtomically(folder_.File("run.json"),
                          absl::StrCat(R"({"name": "demo", "rounds": 5, "sequence_length": 8,
      "samples_per_worker": 1, "data_fingerprint": ")",
                                       std::string(64, 'a'), "\"}"))
          .ok());
  InviteOptions options = Options();
  options.ca = folder_.File("tls/ca.pem");
  options.run = folder_.File("run.json");
  options.valid = absl::Hours(24);
  const auto report = MakeInvite(options, now_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->text, HasSubstr("distro-worker --invite"));
  EXPECT_EQ(ModeOf(options.out), 0600u);
  EXPECT_EQ(ModeOf(tokens_), 0600u);
  const auto invite = ReadInvite(options.out);
  ASSERT_TRUE(invite.ok()) << invite.status();
  EXPECT_EQ(invite->aggregator, "aggregator.example:7700");
  EXPECT_EQ(invite->name, "w2");
  EXPECT_EQ(invite->role, "worker");
  EXPECT_EQ(invite->run, "demo");
  EXPECT_EQ(invite->data_fingerprint, std::string(64, 'a'));
  EXPECT_EQ(invite->expires, now_ + absl::Hours(24));
  EXPECT_EQ(invite->ca, *ReadFile(options.ca));
  const auto owner = Table().Find(invite->token);
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->name, "w2");
  EXPECT_EQ(owner->role, server::Role::kWorker);
  EXPECT_EQ(owner->expires, invite->expires);
  EXPECT_THAT(*ReadFile(tokens_), ::testing::Not(HasSubstr(invite->token)));
}

TEST_F(InviteCommandTest, OthersTokensStayAndASecondInviteNeedsToBeAskedFor) {
  ASSERT_TRUE(MakeInvite(Options("w1"), now_).ok());
  ASSERT_TRUE(MakeInvite(Options("w2"), now_).ok());
  const std::string before = *ReadFile(tokens_), invite = *ReadFile(Options().out);
  const absl::Status again = MakeInvite(Options(), now_).status();
  EXPECT_EQ(again.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.message()), HasSubstr("--replace"));
  EXPECT_EQ(*ReadFile(tokens_), before);
  EXPECT_EQ(*ReadFile(Options().out), invite);

  InviteOptions replace = Options();
  replace.replace = true;
  ASSERT_TRUE(MakeInvite(replace, now_).ok());
  EXPECT_FALSE(Table().Find(ParseInvite(invite)->token).has_value()) << "the old one is revoked";
  EXPECT_EQ(Table().Find(ReadInvite(replace.out)->token)->name, "w2");
  EXPECT_EQ(Table().size(), 2u);
}

TEST_F(InviteCommandTest, RefusesWhatWouldNotWorkAndChangesNothing) {
  const auto refused = [&](const InviteOptions& options, const std::string& message) {
    const absl::Status status = MakeInvite(options, now_).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(options.out));
    EXPECT_FALSE(std::filesystem::exists(tokens_));
  };
  InviteOptions options = Options();
  options.name = "W2";
  refused(options, "NAME");
  options = Options();
  options.aggregator.clear();
  refused(options, "--aggregator: is required");
  options = Options();
  options.aggregator = "two words:7700";
  refused(options, "aggregator");
  options = Options();
  options.role = "king";
  refused(options, "--role");
  options = Options();
  options.valid = absl::ZeroDuration();
  refused(options, "--valid");
  options = Options();
  options.tokens_file.clear();
  refused(options, "--tokens_file");
  ASSERT_TRUE(WriteFileAtomically(folder_.File("no-ca"), "hello").ok());
  options = Options();
  options.ca = folder_.File("no-ca");
  refused(options, "--ca");
  options = Options();
  options.run = folder_.File("no-ca");
  refused(options, "no-ca");
}

// flock excludes open files from each other, in one process as in several.
TEST_F(InviteCommandTest, ManyAtOnceAndRevocationsAllTakeEffect) {
  constexpr int kEach = 8;
  for (int i = 0; i < kEach; ++i)
    ASSERT_TRUE(MakeInvite(Options(absl::StrCat("old-", i)), now_).ok());
  ASSERT_EQ(chmod(tokens_.c_str(), 0640), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kEach; ++i) {
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(MakeInvite(Options(absl::StrCat("new-", i)), now_).ok()); });
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(RevokeTokens(absl::StrCat("old-", i), tokens_).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  const server::TokenTable table = Table();
  EXPECT_EQ(table.size(), size_t{kEach});
  for (int i = 0; i < kEach; ++i)
    EXPECT_TRUE(table.Find(ReadInvite(Options(absl::StrCat("new-", i)).out)->token)) << i;
  EXPECT_EQ(ModeOf(tokens_), 0640u);
  // Nothing is left but the tokens, their lock, and the invites.
  using Files = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Files(folder_.path()), Files()), 2 + 2 * kEach);
}

TEST_F(InviteCommandTest, OnlyOneOfTwoAtOnceMakesAnInvite) {
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { made += MakeInvite(Options(), now_).ok() ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(Table().Find(ReadInvite(Options().out)->token));
}

TEST_F(InviteCommandTest, KeepsDamagedTokensFile) {
  ASSERT_TRUE(WriteFileAtomically(tokens_, "w1 worker nonsense\n").ok());
  EXPECT_EQ(MakeInvite(Options(), now_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(*ReadFile(tokens_), "w1 worker nonsense\n");
  EXPECT_FALSE(std::filesystem::exists(Options().out));
}

}  // namespace
}  // namespace distro::tools
