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

// A disk that hangs until it is released.
struct HangingDisk {
  absl::Mutex mu;
  bool hangs ABSL_GUARDED_BY(mu) = false;
  int waiting ABSL_GUARDED_BY(mu) = 0;

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
        std::vector<std::string>{path_},
        [path = path_, disk = disk_]() -> absl::StatusOr<std::string> {
          disk->Pass();
          return ReadFile(path);
        },
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
  const std::shared_ptr<HangingDisk> disk_ = std::make_shared<HangingDisk>();
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
