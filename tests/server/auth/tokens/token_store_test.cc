#include "server/auth/tokens/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "tests/server/auth/tokens/recording_observer.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"

namespace distro::server {
namespace {

class TokenStoreTest : public ::testing::Test {
 protected:
  void Write(absl::string_view text) { ASSERT_TRUE(WriteFileAtomically(path_, text).ok()); }
  void Open() {
    auto store = TokenStore::Open(path_, &clock_, &log_, &observer_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  static std::string Token(char c) { return std::string(43, c); }
  static std::string Line(char c) { return TokensLine("w1", Role::kWorker, Token(c)) + "\n"; }

  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("tokens");
  testing::FakeClock clock_;
  std::string logged_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view l) { absl::StrAppend(&logged_, l); }};
  testing::RecordingObserver observer_;
  std::unique_ptr<TokenStore> store_;
};

TEST_F(TokenStoreTest, TakesAChangedFile) {
  Write(Line('a'));
  Open();
  EXPECT_FALSE(store_->Find(Token('b')).ok());
  Write(Line('a') + Line('b'));
  ASSERT_TRUE(observer_.Await("tokens ok"));
  EXPECT_TRUE(store_->Find(Token('b')).ok());
  EXPECT_TRUE(store_->Find(Token('a')).ok());
  Write(Line('b'));
  ASSERT_TRUE(observer_.Await("tokens ok", 2));
  EXPECT_FALSE(store_->Find(Token('a')).ok());
}

TEST_F(TokenStoreTest, ForgetsExpiredToken) {
  const absl::Time until =
      absl::FromUnixSeconds(absl::ToUnixSeconds(clock_.WallNow())) + absl::Seconds(60);
  Write(TokensLine("w1", Role::kWorker, Token('a'), until));
  Open();
  EXPECT_TRUE(store_->Find(Token('a')).ok());
  clock_.Advance(absl::Seconds(61));
  EXPECT_FALSE(store_->Find(Token('a')).ok());
}

TEST_F(TokenStoreTest, KeepsTheOldTokensWhenTheFileIsBadOrGone) {
  Write(Line('a'));
  Open();
  EXPECT_TRUE(store_->problem().ok());
  Write("w1 worker nonsense\n");
  ASSERT_TRUE(observer_.Await("tokens error"));
  EXPECT_TRUE(store_->Find(Token('a')).ok());
  EXPECT_THAT(store_->problem().message(), ::testing::HasSubstr("line 1"));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_TRUE(observer_.Await("tokens error", 2));
  EXPECT_TRUE(store_->Find(Token('a')).ok());
  Write(Line('b'));
  ASSERT_TRUE(observer_.Await("tokens ok"));
  EXPECT_FALSE(store_->Find(Token('a')).ok());
  EXPECT_TRUE(store_->problem().ok());
  // Once for each change, however often it was looked at.
  EXPECT_THAT(observer_.reloads(),
              ::testing::ElementsAre("tokens error", "tokens error", "tokens ok"));
}

TEST_F(TokenStoreTest, IsNotOpenedOnABadFile) {
  Write("nonsense");
  EXPECT_EQ(TokenStore::Open(path_, &clock_, &log_, &observer_).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TokenStore::Open(path_ + "x", &clock_, &log_, &observer_).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace distro::server
