#include "server/limits/stream_limiter.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limits/periodic_checks.h"
#include "tests/testing/fake_clock.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using testing::FakeClock;

// A stream of a reactor that stores the status with which it was stopped.
struct Client {
  Client(StreamLimiter* limiter, StreamKind kind = StreamKind::kUpload) {
    auto opened = limiter->Open(kind, [this](const absl::Status& status) { stopped = status; });
    refused = opened.status();
    if (opened.ok()) stream = *std::move(opened);
  }
  Client(StreamLimiter* limiter, const std::string& worker, uint64_t incarnation)
      : Client(limiter) {
    stream->Identify(worker, incarnation);
  }

  absl::Status refused;
  std::optional<absl::Status> stopped;
  std::unique_ptr<LimitedStream> stream;
};

class StreamLimiterTest : public ::testing::Test {
 protected:
  static ServiceLimits Limits() {
    ServiceLimits limits;
    limits.streams = 3;
    limits.snapshot_streams = 2;
    limits.worker_bytes_per_second = 1 << 20;
    limits.stall_timeout = absl::Seconds(10);
    limits.stall_bytes = 1000;
    return limits;
  }

  FakeClock clock_;
  StreamLimiter limiter_{Limits(), &clock_};
};

void ExpectStopped(const Client& client, StatusCode code, const std::string& reason) {
  ASSERT_TRUE(client.stopped.has_value());
  EXPECT_EQ(client.stopped->code(), code) << *client.stopped;
  EXPECT_EQ(ReasonOf(*client.stopped), reason);
}

TEST_F(StreamLimiterTest, EndsOlderUploadOfWorker) {
  Client first(&limiter_, "a", 1), other(&limiter_, "b", 1);
  Client second(&limiter_, "a", 1);
  ExpectStopped(first, StatusCode::kUnavailable, "limit");
  EXPECT_FALSE(second.stopped);
  EXPECT_FALSE(other.stopped);
  EXPECT_EQ(limiter_.open(StreamKind::kUpload), 2);
  second.stream->Identify("a", 1);
  EXPECT_FALSE(second.stopped);
}

TEST_F(StreamLimiterTest, StopsUploadOfOlderProcess) {
  Client first(&limiter_, "a", 1);
  Client second(&limiter_, "a", 2);
  ExpectStopped(first, StatusCode::kAborted, "replaced");
}

TEST_F(StreamLimiterTest, KindsHaveTheirOwnPlaces) {
  std::vector<std::unique_ptr<Client>> subscribers;
  for (int i = 0; i < 3; ++i)
    subscribers.push_back(std::make_unique<Client>(&limiter_, StreamKind::kSubscription));
  const Client one_more(&limiter_, StreamKind::kSubscription);
  EXPECT_EQ(one_more.refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(one_more.refused), "limit");
  EXPECT_EQ(RetryAfterOf(one_more.refused), absl::Seconds(1));
  EXPECT_TRUE(Client(&limiter_).refused.ok());
  subscribers.pop_back();
  EXPECT_TRUE(Client(&limiter_, StreamKind::kSubscription).refused.ok());
}

TEST_F(StreamLimiterTest, StopsOldestWithoutHeader) {
  Client worker(&limiter_, "a", 1), oldest(&limiter_), newer(&limiter_);
  Client next(&limiter_);
  EXPECT_TRUE(next.refused.ok());
  ExpectStopped(oldest, StatusCode::kResourceExhausted, "limit");
  EXPECT_FALSE(newer.stopped);
  EXPECT_FALSE(worker.stopped);
  EXPECT_EQ(limiter_.open(StreamKind::kUpload), 3);
}

TEST_F(StreamLimiterTest, PlacesOfWorkersAreNotTaken) {
  Client a(&limiter_, "a", 1), b(&limiter_, "b", 1), c(&limiter_, "c", 1);
  EXPECT_EQ(Client(&limiter_).refused.code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(a.stopped || b.stopped || c.stopped);
}

TEST_F(StreamLimiterTest, SweepsStalledStreams) {
  Client silent(&limiter_, "a", 1), busy(&limiter_, "b", 1),
      follower(&limiter_, StreamKind::kSubscription);
  clock_.Advance(absl::Seconds(9));
  limiter_.StopStalled();
  EXPECT_FALSE(silent.stopped);
  busy.stream->Moved(1000);
  clock_.Advance(absl::Seconds(1));
  limiter_.StopStalled();
  ExpectStopped(silent, StatusCode::kDeadlineExceeded, "stalled");
  EXPECT_FALSE(busy.stopped);
  EXPECT_FALSE(follower.stopped);
  silent.stopped.reset();
  clock_.Advance(absl::Seconds(100));
  Client c(&limiter_, "c", 1), d(&limiter_, "d", 1), e(&limiter_, "e", 1);  // busy stalls by now
  EXPECT_TRUE(e.refused.ok());
  ExpectStopped(busy, StatusCode::kDeadlineExceeded, "stalled");
  EXPECT_FALSE(silent.stopped) << "stopped twice";
}

TEST_F(StreamLimiterTest, SparesPausedStream) {
  Client client(&limiter_, StreamKind::kSnapshot);
  client.stream->PauseTimeout();
  clock_.Advance(absl::Hours(1));
  limiter_.StopStalled();
  EXPECT_FALSE(client.stopped);
  client.stream->ResumeTimeout();
  clock_.Advance(absl::Seconds(10));
  limiter_.StopStalled();
  ExpectStopped(client, StatusCode::kDeadlineExceeded, "stalled");
}

TEST_F(StreamLimiterTest, SharesRateAmongStreams) {
  absl::Status status;
  uint64_t taken = 0;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    Client client(&limiter_, "a", i + 1);
    status = client.stream->Received(1 << 19);
    if (status.ok()) taken += 1 << 19;
  }
  EXPECT_EQ(taken, 4u << 20);  // four seconds' worth
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "limit");
  EXPECT_EQ(RetryAfterOf(status), absl::Milliseconds(500));
  EXPECT_TRUE(Client(&limiter_, "b", 1).stream->Received(1 << 19).ok());
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_TRUE(Client(&limiter_, "a", 1).stream->Received(1 << 19).ok());
}

TEST_F(StreamLimiterTest, TinyMessagesAreNotFree) {
  Client client(&limiter_, "a", 1);
  int messages = 0;
  while (messages < 100'000 && client.stream->Received(1).ok()) ++messages;
  EXPECT_EQ(messages, (4 << 20) / 256);
}

TEST_F(StreamLimiterTest, SparesEndedStream) {
  Client client(&limiter_, "a", 1);
  client.stream = nullptr;
  EXPECT_EQ(limiter_.open(StreamKind::kUpload), 0);
  clock_.Advance(absl::Hours(1));
  limiter_.StopStalled();
  const Client newer(&limiter_, "a", 1);
  EXPECT_FALSE(client.stopped);
}

TEST_F(StreamLimiterTest, PeriodicChecksStopWhatStalledByTheClock) {
  absl::Mutex mu;
  bool stopped = false;
  auto stream = limiter_.Open(StreamKind::kUpload, [&](const absl::Status&) {
    absl::MutexLock lock(&mu);
    stopped = true;
  });
  ASSERT_TRUE(stream.ok());
  std::atomic<bool> looked = false;
  const PeriodicChecks periodic_checks(&limiter_, [&looked] { looked = true; });
  clock_.Advance(absl::Seconds(11));
  while (!looked) std::this_thread::yield();
  absl::MutexLock lock(&mu);
  mu.Await(absl::Condition(&stopped));
}

TEST_F(StreamLimiterTest, StreamsComeAndGoOnManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 300; ++i) {
        Client client(&limiter_);
        if (client.stream == nullptr) continue;
        client.stream->Identify(t % 2 == 0 ? "a" : "b", t);
        client.stream->Moved(10);
        limiter_.StopStalled();
        client.stream = nullptr;  // before what it calls
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const StreamKind kind : {StreamKind::kUpload, StreamKind::kSubscription})
    EXPECT_EQ(limiter_.open(kind), 0);
}

TEST_F(StreamLimiterTest, StopsOldestOfThreeLinks) {
  std::vector<std::unique_ptr<Client>> links;
  for (const char* name : {"a", "a", "b", "a"}) {
    links.push_back(std::make_unique<Client>(&limiter_, StreamKind::kLink));
    ASSERT_TRUE(links.back()->refused.ok());
    links.back()->stream->Identify(name, 0);
  }
  ExpectStopped(*links[0], StatusCode::kUnavailable, "limit");
  for (int i = 1; i < 4; ++i) EXPECT_FALSE(links[i]->stopped) << i;
  EXPECT_EQ(limiter_.open(StreamKind::kLink), 3);
  Client other(&limiter_, StreamKind::kLink);
  EXPECT_TRUE(other.refused.ok()) << "one name holds all places";
}

// A follower that comes back while its older streams still look alive displaces those, and nobody
// else's.
TEST_F(StreamLimiterTest, BeyondItsPlacesANamesOldestStreamMakesRoom) {
  for (const auto& [kind, places] : {std::pair(StreamKind::kSubscription, kSubscriptionsOfAName),
                                     std::pair(StreamKind::kSnapshot, kSnapshotsOfAName)}) {
    ServiceLimits limits;
    StreamLimiter limiter(limits, &clock_);
    Client other(&limiter, kind), nameless(&limiter, kind);
    other.stream->Identify("b", 0);
    std::vector<std::unique_ptr<Client>> mine;
    for (int i = 0; i < 3 * places; ++i) {
      mine.push_back(std::make_unique<Client>(&limiter, kind));
      mine.back()->stream->Identify("a", 0);
      const int open = std::min(i + 1, places);
      EXPECT_EQ(limiter.open(kind), open + 2);
      if (i >= places) ExpectStopped(*mine[i - places], StatusCode::kUnavailable, "limit");
      EXPECT_FALSE(mine.back()->stopped);
    }
    EXPECT_FALSE(other.stopped || nameless.stopped);
  }
}

}  // namespace
}  // namespace distro::server
