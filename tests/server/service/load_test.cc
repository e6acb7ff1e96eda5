// A thousand uploads that stall and a thousand subscribers that do not read, against one aggregator
// process: what it holds before, during and after, and how long rounds of two honest workers take
// meanwhile (docs/reliability.md, "Load").
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/run_config.h"
#include "gtest/gtest.h"
#include "tests/server/round/run_fixture.h"
#include "tests/server/service/test_client.h"
#include "tests/testing/child_process.h"
#include "tests/testing/scratch_folder.h"

namespace distro::testing {
namespace {

constexpr int kStreams = 1000;
constexpr int kPerConnection = 25;
constexpr int kRounds = 60;  // measured, each time
// The sanitizers' own memory is several times the program's: its size says nothing then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// distro-aggregator as a process of its own; ended with the object.
class Aggregator {
 public:
  explicit Aggregator(const std::vector<std::string>& flags) : process_(DISTRO_AGGREGATOR, flags) {
    const std::string line = process_.AwaitLine("listening");
    const size_t at = line.find("grpc=") + 5;
    address_ = line.substr(at, line.find_first_of(" \n", at) - at);
  }

  const std::string& address() const { return address_; }
  // Resident MiB.
  double Rss() const {
    std::ifstream status(absl::StrCat("/proc/", process_.pid(), "/statm"));
    uint64_t size = 0, resident = 0;
    status >> size >> resident;
    return static_cast<double>(resident) * static_cast<double>(getpagesize()) / (1 << 20);
  }

 private:
  ChildProcess process_;
  std::string address_;
};

class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    TensorBuffer parameters(layout_);
    EXPECT_TRUE(WriteCheckpointFolder(folder_.File("model"), "{}", layout_, parameters).ok());
    v1::RunConfig config = SmallConfig();
    config.set_start_workers(2);
    config.set_rounds(10 * kRounds);
    EXPECT_TRUE(WriteFileAtomically(folder_.File("run.json"), RunConfigToJson(config)).ok());
  }

  struct Load {
    double rss = 0;          // MiB, with all streams open, after the rounds
    absl::Duration uploads;  // median round with the uploads
    absl::Duration both;     // and with the subscribers too
  };
  // Opens all streams, measures, and waits until the aggregator has ended the uploads.
  Load Wave(const Aggregator& aggregator) {
    std::vector<std::unique_ptr<v1::AggregatorService::Stub>> stubs;
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    const auto next = [&](int i) {
      if (i % kPerConnection == 0)
        stubs.push_back(v1::AggregatorService::NewStub(TestChannel(aggregator.address())));
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      return stubs.back().get();
    };
    Load load;
    std::vector<std::unique_ptr<
        grpc::ClientReaderWriter<v1::UploadUpdateRequest, v1::UploadUpdateResponse>>>
        uploads;
    for (int i = 0; i < kStreams; ++i) {
      v1::AggregatorService::Stub* stub = next(i);
      uploads.push_back(stub->UploadUpdate(contexts.back().get()));
    }
    load.uploads = MedianRound();
    v1::SubscribeRoundsRequest subscribe;
    subscribe.set_run_id(a_->joined().run_id());
    subscribe.set_from_round(round_);
    subscribe.set_last_hash(hash_);
    std::vector<std::unique_ptr<grpc::ClientReader<v1::SubscribeRoundsResponse>>> subscribers;
    for (int i = 0; i < kStreams; ++i) {
      v1::AggregatorService::Stub* stub = next(i);
      subscribers.push_back(stub->SubscribeRounds(contexts.back().get(), subscribe));
      v1::SubscribeRoundsResponse open;
      EXPECT_TRUE(subscribers.back()->Read(&open)) << i;
    }
    load.both = MedianRound();
    load.rss = aggregator.Rss();
    for (auto& upload : uploads) {
      v1::UploadUpdateResponse response;
      EXPECT_FALSE(upload->Read(&response));
      const absl::Status status = FromGrpcStatus(upload->Finish());
      EXPECT_EQ(ReasonOf(status), "stalled") << status;
    }
    for (auto& context : contexts) context->TryCancel();
    for (auto& subscriber : subscribers) (void)subscriber->Finish();
    return load;
  }
  static double Ms(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

  // The median time of a round, from the first upload to the commit at both workers.
  absl::Duration MedianRound() {
    std::vector<absl::Duration> times;
    for (int i = 0; i < kRounds; ++i, ++round_) {
      EXPECT_TRUE(from_a_->NextOpen().ok());
      EXPECT_TRUE(from_b_->NextOpen().ok());
      const absl::Duration begin = Clock::Real()->MonotonicNow();
      EXPECT_EQ(a_->Upload(round_, UpdatePayloads(layout_, RoundId(round_), 1)).status,
                absl::OkStatus());
      EXPECT_EQ(b_->Upload(round_, UpdatePayloads(layout_, RoundId(round_), 2)).status,
                absl::OkStatus());
      const auto commit = from_a_->NextCommit();
      EXPECT_TRUE(commit.ok() && from_b_->NextCommit().ok());
      times.push_back(Clock::Real()->MonotonicNow() - begin);
      hash_ = commit.ok() ? commit->hash : 0;
      a_->Heartbeat(round_ + 1, hash_);
      b_->Heartbeat(round_ + 1, hash_);
    }
    std::ranges::nth_element(times, times.begin() + kRounds / 2);
    return times[kRounds / 2];
  }

  ScratchFolder folder_;
  const Layout layout_ = SmallLayout();
  std::unique_ptr<TestWorker> a_, b_;
  std::unique_ptr<TestSubscription> from_a_, from_b_;
  uint64_t round_ = 0;
  uint64_t hash_ = 0;
};

TEST_F(LoadTest, DelaysNobody) {
  const Aggregator aggregator({"--data_dir=" + folder_.File("data"),
                               "--run=" + folder_.File("run.json"),
                               "--model=" + folder_.File("model"), "--listen=127.0.0.1:0",
                               "--http=127.0.0.1:0", "--insecure", "--stall_timeout=10s",
                               // The workers are silent while a wave ends, and no round may go on
                               // without them for it.
                               "--suspect_after=1h", "--lease=2h"});
  a_ = std::make_unique<TestWorker>(aggregator.address(), "a", 1);
  b_ = std::make_unique<TestWorker>(aggregator.address(), "b", 1);
  for (TestWorker* worker : {a_.get(), b_.get()}) {
    ASSERT_TRUE(worker->Join().ok());
    worker->Heartbeat(0, 0);
  }
  from_a_ = a_->Subscribe(&layout_);
  from_b_ = b_->Subscribe(&layout_);
  const absl::Duration alone = MedianRound();
  const double before = aggregator.Rss();

  const Load first = Wave(aggregator), second = Wave(aggregator);
  const absl::Duration again = MedianRound();
  std::cout << "rss_mib before=" << before << " first=" << first.rss << " second=" << second.rss
            << " after=" << aggregator.Rss() << "\nmedian_round_ms alone=" << Ms(alone)
            << " uploads=" << Ms(first.uploads) << " uploads_and_subscribers=" << Ms(first.both)
            << " again=" << Ms(again) << std::endl;
  if (kSanitized) return;
  // 64 KiB of windows and bookkeeping a stream; what the first wave gave back is used again by the
  // second, whose buffers need not fit the same holes.
  EXPECT_LT(first.rss, before + 2 * kStreams * 64.0 / 1024);
  EXPECT_LT(second.rss, first.rss + (first.rss - before) / 2);
}

}  // namespace
}  // namespace distro::testing
