#include "tools/distroctl/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/net/security/tls_files.h"
#include "server/auth/tokens/tokens_file.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/troubleshooting_page.h"
#include "tools/distroctl/private_file.h"

namespace distro::tools {
namespace {

using ::testing::HasSubstr;

mode_t ModeOf(const std::string& path) {
  struct stat file = {};
  EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
  return file.st_mode & 0777;
}

TEST(TokenCommandTest, PrintsATokenAndTheLineThatKnowsIt) {
  const auto text = MakeToken("w1", "worker");
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(text->text, '\n');
  ASSERT_EQ(lines.size(), 2u);
  const std::string token = lines[0].substr(sizeof("token"));
  const auto table = server::TokenTable::Parse(lines[1].substr(sizeof("line")));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Find(token)->name, "w1");
  EXPECT_THAT(lines[1], ::testing::Not(HasSubstr(token)));
}

TEST(TokenCommandTest, RefusesNamesAndRolesThatAreNone) {
  EXPECT_EQ(MakeToken("W1", "worker").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MakeToken("w1", "").status().message(), HasSubstr("--role"));
}

TEST(TokenCommandTest, RevokesANameAndKeepsTheFilesMode) {
  const testing::ScratchFolder folder;
  const std::string file = folder.File("tokens");
  const std::string token(43, 'a');
  ASSERT_TRUE(
      WriteFileAtomically(file, server::TokensLine("w1", server::Role::kWorker, token)).ok());
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(RevokeTokens("w2", file).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(RevokeTokens("w1", file).ok());
  EXPECT_EQ(*ReadFile(file), "");
  EXPECT_EQ(ModeOf(file), 0640u);
  EXPECT_THAT(RevokeTokens("w1", "").status().message(), HasSubstr("--tokens_file"));
}

TEST(TokenCommandTest, ReadsByteOrderMark) {
  const testing::ScratchFolder folder;
  const std::string file = folder.File("tokens");
  const auto line = [](const char* name, char c) {
    return server::TokensLine(name, server::Role::kWorker, std::string(43, c)) + "\r\n";
  };
  ASSERT_TRUE(WriteFileAtomically(file, "\xEF\xBB\xBF" + line("w1", 'a') + line("w2", 'b')).ok());
  ASSERT_TRUE(RevokeTokens("w1", file).ok());
  const auto table = server::TokenTable::Parse(*ReadFile(file));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 1u);
}

TEST(FileLockTest, FailsWhileHeld) {
  const testing::ScratchFolder folder;
  const std::string file = folder.File("tokens");
  auto held = FileLock::Take(file);
  ASSERT_TRUE(held.ok()) << held.status();
  const absl::Status status = FileLock::Take(file, absl::ZeroDuration()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(testing::TroubleshootingPageHas(
      absl::StrReplaceAll(status.message(), {{file, "FILE"}}), "no address", "no folder"))
      << status.message();
  { const FileLock ended = *std::move(held); }
  EXPECT_TRUE(FileLock::Take(file, absl::ZeroDuration()).ok());
}

TEST(CertsCommandTest, WritesPairsThatFitAndHidesKeys) {
  const testing::ScratchFolder folder;
  const CertsOptions options = {
      .out = folder.File("tls"), .hosts = {"127.0.0.1", "localhost"}, .workers = {"w1"}};
  const auto text = MakeCerts(options, absl::Now());
  ASSERT_TRUE(text.ok()) << text.status();
  for (const char* name : {"ca", "server", "admin", "worker-w1"}) {
    const std::string base = folder.File(std::string("tls/") + name);
    EXPECT_THAT(text->text, HasSubstr(base + ".pem"));
    EXPECT_EQ(ModeOf(base + "-key.pem"), 0600u);
    const TlsSide side = base.ends_with("server") ? TlsSide::kServer : TlsSide::kClient;
    const TlsFiles files = {
        .ca = folder.File("tls/ca.pem"), .cert = base + ".pem", .key = base + "-key.pem"};
    if (base.ends_with("/ca")) continue;
    EXPECT_EQ(ReadTlsFiles(files, side).status(), absl::OkStatus());
  }
  const auto subject = SubjectOf(*ReadFile(folder.File("tls/worker-w1.pem")));
  ASSERT_TRUE(subject.ok());
  EXPECT_EQ(subject->name, "w1");
  EXPECT_EQ(subject->role, "worker");
}

TEST(CertsCommandTest, CallsAtTheSameTimeHaveOneCa) {
  const testing::ScratchFolder folder;
  std::atomic<int> cas = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&folder, &cas] {
      const auto made =
          MakeCerts({.out = folder.File("tls"), .hosts = {"h"}, .workers = {"w1"}}, absl::Now());
      ASSERT_TRUE(made.ok()) << made.status();
      cas += absl::StrContains(made->text, "/ca.pem") ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cas, 1);
  EXPECT_TRUE(ReadTlsFiles({.ca = folder.File("tls/ca.pem"),
                            .cert = folder.File("tls/worker-w1.pem"),
                            .key = folder.File("tls/worker-w1-key.pem")},
                           TlsSide::kClient)
                  .ok());
}

TEST(CertsCommandTest, GoesOnWithTheCaThatIsThere) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(MakeCerts({.out = folder.path(), .hosts = {"h"}, .workers = {}}, absl::Now()).ok());
  const std::string ca = *ReadFile(folder.File("ca.pem"));
  ASSERT_TRUE(
      MakeCerts({.out = folder.path(), .hosts = {"h"}, .workers = {"w2"}}, absl::Now()).ok());
  EXPECT_EQ(*ReadFile(folder.File("ca.pem")), ca);
  EXPECT_TRUE(ReadFile(folder.File("worker-w2.pem")).ok());
}

TEST(CertsCommandTest, NamesTheFlagThatIsMissing) {
  EXPECT_THAT(MakeCerts({}, absl::Now()).status().message(), HasSubstr("--out"));
  CertsOptions options;
  options.out = "out";
  EXPECT_THAT(MakeCerts(options, absl::Now()).status().message(), HasSubstr("--host"));
}

}  // namespace
}  // namespace distro::tools
