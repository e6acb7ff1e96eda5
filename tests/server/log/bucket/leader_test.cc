#include "server/log/bucket/leader.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "gtest/gtest.h"
#include "tests/testing/object_store.h"
#include "tests/testing/scratch_folder.h"

namespace distro::server {
namespace {

using testing::ObjectStore;
using testing::ScratchFolder;
using testing::StoreFault;

class LeaderTest : public ::testing::Test {
 protected:
  LeaderTest() { EXPECT_TRUE(client_->Put("epoch", ContentOf("7\n")).ok()); }

  std::unique_ptr<LeaderHeartbeat> Lead(std::function<void(absl::Status)> on_fenced = nullptr) {
    return std::make_unique<LeaderHeartbeat>(
        *client_, [this] { return epoch_; },
        LeaderOptions{.interval = absl::Milliseconds(5),
                      .patience = patience_,
                      .on_fenced = on_fenced ? std::move(on_fenced)
                                             : [](absl::Status status) { FAIL() << status; }},
        &log_);
  }
  absl::Status Await(
      absl::Duration silence, std::function<bool()> cancelled = [] { return false; }) {
    return AwaitLeadership(client_.get(), folder_.File("standby"), silence, cancelled,
                           Clock::Real(), &log_);
  }
  // Waits until the leader has written so many times.
  void AwaitBeats(int beats) {
    struct Seen {
      std::atomic<int> beats = 0;
      absl::Notification enough;
    };
    const auto seen = std::make_shared<Seen>();  // a request may still see it
    store_.SetFault([seen, beats](const std::string& method, const std::string& key, int) {
      if (method == "PUT" && key == "leader" && ++seen->beats == beats) seen->enough.Notify();
      return StoreFault::kNone;
    });
    seen->enough.WaitForNotification();
    store_.SetFault(nullptr);
  }

  ObjectStore store_;
  ScratchFolder folder_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  const std::unique_ptr<S3Client> client_ = store_.Client();
  absl::Duration patience_;
  std::string epoch_ = ToHex(Sha256("7\n"));
};

TEST_F(LeaderTest, WritesAgainAndAgainAndLeavesNothing) {
  {
    const auto leader = Lead();
    AwaitBeats(3);
    EXPECT_TRUE(store_.objects().contains("leader"));
  }
  EXPECT_FALSE(store_.objects().contains("leader"));
}

TEST_F(LeaderTest, EndsWhenAnotherHasRaisedTheEpoch) {
  absl::Notification fenced;
  std::atomic<int> calls = 0;
  {
    const auto leader = Lead([&](absl::Status status) {
      EXPECT_EQ(ReasonOf(status), "fenced");
      if (++calls == 1) fenced.Notify();
    });
    AwaitBeats(1);
    store_.Set("epoch", "8\n");
    fenced.WaitForNotification();
    store_.Set("leader", "another");
  }
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(store_.objects().contains("leader"));
}

TEST_F(LeaderTest, EndsWhenTheStoreIsAwayAndAnotherMayLead) {
  patience_ = absl::Milliseconds(50);
  absl::Notification ended;
  const auto leader = Lead([&](absl::Status status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    ended.Notify();
  });
  AwaitBeats(1);
  store_.SetFault([](const std::string&, const std::string&, int) { return StoreFault::kRefuse; });
  ended.WaitForNotification();
}

TEST_F(LeaderTest, FaultsOfTheStoreEndNothing) {
  const auto leader = Lead();
  store_.SetFault([](const std::string&, const std::string&, int n) {
    return n % 2 == 0 ? StoreFault::kRefuse : StoreFault::kNone;
  });
  AwaitBeats(3);
}

// Its start may fail, and then the one that led before still does.
TEST_F(LeaderTest, OneThatHasNotRaisedTheEpochRemovesNothing) {
  epoch_.clear();
  {
    const auto leader = Lead();
    AwaitBeats(2);
  }
  EXPECT_TRUE(store_.objects().contains("leader"));
}

TEST_F(LeaderTest, OneThatWaitsTakesOverWhereNobodyLeads) {
  EXPECT_TRUE(Await(absl::Hours(1)).ok());
  EXPECT_TRUE(store_.objects().contains("leader"));
}

TEST_F(LeaderTest, OneOfSeveralTakesOver) {
  store_.Set("leader", "7 1\n");
  std::atomic<int> leaders = 0;
  std::vector<std::thread> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back([&, i] {
      Log log(LogLevel::kError);
      const auto client = store_.Client();
      const absl::Status status = AwaitLeadership(
          client.get(), folder_.File(std::to_string(i)), absl::Milliseconds(400),
          [&] { return leaders > 0; }, Clock::Real(), &log);
      if (status.ok()) ++leaders;
    });
  }
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(leaders, 1);
}

TEST_F(LeaderTest, OneThatWaitsTakesOverFromASilentOne) {
  store_.Set("leader", "7 1\n");
  EXPECT_TRUE(Await(absl::Milliseconds(50)).ok());
}

TEST_F(LeaderTest, OneThatWaitsIsPatientWhileTheLeaderWrites) {
  int looks = 0;
  store_.SetFault([&](const std::string& method, const std::string& key, int n) {
    if (method == "GET" && key == "leader") {
      ++looks;
      store_.Set("leader", std::to_string(n).c_str());
    }
    return StoreFault::kNone;
  });
  const absl::Status status = Await(absl::Milliseconds(8), [&] { return looks >= 30; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(LeaderTest, TakesNoFaultOfTheStoreForSilence) {
  store_.Set("leader", "7 1\n");
  int looks = 0;
  store_.SetFault([&](const std::string&, const std::string& key, int) {
    if (key == "leader") ++looks;
    return looks > 1 ? StoreFault::kRefuse : StoreFault::kNone;
  });
  EXPECT_EQ(Await(absl::Milliseconds(8), [&] { return looks >= 30; }).code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace distro::server
