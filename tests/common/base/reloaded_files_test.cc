#include "common/base/reloaded_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/file.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

// A disk that hangs until it is released, or refuses to read.
struct FaultyDisk {
  absl::Mutex mu;
  bool hangs ABSL_GUARDED_BY(mu) = false;
  int waiting ABSL_GUARDED_BY(mu) = 0;
  bool refuses ABSL_GUARDED_BY(mu) = false;
  int refused ABSL_GUARDED_BY(mu) = 0;

  void Hang(bool on) {
    absl::MutexLock lock(&mu);
    hangs = on;
  }
  void Pass() {
    absl::MutexLock lock(&mu);
    ++waiting;
    const auto free = [this] {
      mu.AssertHeld();
      return !hangs;
    };
    mu.Await(absl::Condition(&free));
    --waiting;
  }
  void Refuse(bool on) {
    absl::MutexLock lock(&mu);
    refuses = on;
  }
  absl::StatusOr<std::string> Read(const std::string& path) {
    Pass();
    absl::MutexLock lock(&mu);
    if (!refuses) return ReadFile(path);
    ++refused;
    return absl::PermissionDeniedError("no");
  }
  void AwaitRefused(int times) {
    absl::MutexLock lock(&mu);
    const auto is = [this, times] {
      mu.AssertHeld();
      return refused >= times;
    };
    mu.Await(absl::Condition(&is));
  }
  void AwaitWaiting(bool some) {
    absl::MutexLock lock(&mu);
    const auto is = [this, some] {
      mu.AssertHeld();
      return (waiting > 0) == some;
    };
    mu.Await(absl::Condition(&is));
  }
};

class ReloadedFilesTest : public ::testing::Test {
 protected:
  void Write(absl::string_view text) { ASSERT_TRUE(WriteFileAtomically(path_, text).ok()); }
  void Start() {
    text_ = std::make_unique<Reloaded<std::string>>(
        std::vector<std::string>{path_}, [path = path_, disk = disk_] { return disk->Read(path); },
        [this](const absl::StatusOr<std::shared_ptr<const std::string>>& now) {
          absl::MutexLock lock(&mu_);
          told_.push_back(now.ok() ? **now : now.status().ToString());
        },
        &clock_);
    ASSERT_TRUE(text_->Start().ok());
  }
  std::vector<std::string> AwaitTold(size_t times) {
    absl::MutexLock lock(&mu_);
    const auto told = [&] {
      mu_.AssertHeld();
      return told_.size() >= times;
    };
    mu_.AwaitWithTimeout(absl::Condition(&told), absl::Minutes(1));
    return told_;
  }

  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("file");
  testing::FakeClock clock_;
  const std::shared_ptr<FaultyDisk> disk_ = std::make_shared<FaultyDisk>();
  absl::Mutex mu_;
  std::vector<std::string> told_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Reloaded<std::string>> text_;
};

TEST_F(ReloadedFilesTest, ServesOldFileWhileDiskHangs) {
  Write("one");
  Start();
  disk_->Hang(true);
  Write("two");
  disk_->AwaitWaiting(true);
  EXPECT_EQ(*text_->Get(), "one");
  EXPECT_TRUE(text_->problem().ok());
  clock_.Advance(kFilesAnswerWithin);
  EXPECT_EQ(*text_->Get(), "one");
  EXPECT_EQ(text_->problem().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(AwaitTold(1), ::testing::ElementsAre(::testing::HasSubstr(
                                absl::StrCat(path_, ": the disk has not answered for 10s"))));
  disk_->Hang(false);
  EXPECT_EQ(AwaitTold(2).back(), "two");
  EXPECT_EQ(*text_->Get(), "two");
  EXPECT_TRUE(text_->problem().ok());
}

// As after chmod of a file that was new and not readable.
TEST_F(ReloadedFilesTest, ReadsAgainWhileTheLastReadingFailed) {
  Write("one");
  Start();
  disk_->Refuse(true);
  Write("two");
  disk_->AwaitRefused(3);
  EXPECT_EQ(*text_->Get(), "one");
  EXPECT_EQ(text_->problem().code(), absl::StatusCode::kPermissionDenied);
  disk_->Refuse(false);
  EXPECT_THAT(AwaitTold(2), ::testing::ElementsAre("PERMISSION_DENIED: no", "two"));
  EXPECT_EQ(*text_->Get(), "two");
  EXPECT_TRUE(text_->problem().ok());
}

TEST_F(ReloadedFilesTest, EndsWhileTheDiskHangs) {
  Write("one");
  Start();
  disk_->Hang(true);
  Write("two");
  disk_->AwaitWaiting(true);
  text_.reset();
  disk_->Hang(false);
  disk_->AwaitWaiting(false);
  EXPECT_THAT(AwaitTold(0), ::testing::IsEmpty());
}

}  // namespace
}  // namespace distro
