#include "common/client/follow/mirrors.h"

#include <atomic>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/client/follow/round_feed.h"
#include "common/client/follow/snapshot_fetch.h"
#include "common/net/http/http_endpoint.h"
#include "gmock/gmock.h"
#include "tests/common/client/follow/follow_fixture.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using absl::StatusCode;
using testing::BuildRound;
using testing::BuiltRound;
using ::testing::ElementsAre;

// A mirror that gives what a test puts there. Thread-safe.
class FakeMirror {
 public:
  FakeMirror() {
    endpoint_ = *HttpEndpoint::Start(
        "127.0.0.1", 0,
        {{.path = "/",
          .handler = [this](const HttpRequest& request) { return Answer(request); },
          .prefix = true}});
  }
  std::string url() const { return absl::StrCat("http://127.0.0.1:", endpoint_->port()); }
  void Put(const std::string& path, std::string bytes) {
    absl::MutexLock lock(&mu_);
    objects_[path] = std::move(bytes);
  }
  void PutRound(const std::string& run, const BuiltRound& round) {
    for (uint32_t s = 0; s < round.payloads.size(); ++s)
      Put(ObjectPath({.run_id = run,
                      .result = ObjectName::Result{RoundId(round.header.round()), SegmentId(s)},
                      .sha256 = round.header.segments(static_cast<int>(s)).sha256()}),
          round.payloads[s]);
  }
  int requests() const { return requests_; }
  // Called before each answer.
  void OnRequest(std::function<void()> call) {
    absl::MutexLock lock(&mu_);
    on_request_ = std::move(call);
  }

 private:
  HttpResponse Answer(const HttpRequest& request) {
    ++requests_;
    absl::MutexLock lock(&mu_);
    if (on_request_) on_request_();
    const auto found = objects_.find(request.path);
    if (found == objects_.end()) return {.status = 404, .body = "no\n"};
    return {.body = found->second};
  }

  absl::Mutex mu_;
  std::map<std::string, std::string> objects_;
  std::function<void()> on_request_;
  std::atomic<int> requests_ = 0;
  std::unique_ptr<HttpEndpoint> endpoint_;
};

class MirrorsTest : public FollowTest {
 protected:
  MirrorsTest() {
    object_.set_segment(2);
    object_.set_payload_bytes(kBytes.size());
    const Sha256Digest sha256 = Sha256(kBytes);
    object_.set_sha256(sha256.data(), sha256.size());
    path_ = ObjectPath({.run_id = "run-1",
                        .result = ObjectName::Result{RoundId(5), SegmentId(2)},
                        .sha256 = object_.sha256()});
    client_.clock = &clock_;
  }
  Mirrors MirrorsOf(const std::vector<std::string>& urls) {
    return Mirrors(client_, {.run_id = "run-1", .urls = urls});
  }

  static const std::string kBytes;
  testing::FakeClock clock_;
  Follower client_ = follower_;
  FakeMirror first_, second_;
  v1::SegmentObject object_;
  std::string path_;
};

const std::string MirrorsTest::kBytes = std::string(100000, 'r');

TEST(ChosenMirrorsTest, AreTheUsersOrThoseOfTheAggregator) {
  EXPECT_THAT(ChosenMirrors({}, {"http://a"}), ElementsAre("http://a"));
  EXPECT_THAT(ChosenMirrors({"http://b", "http://c"}, {"http://a"}),
              ElementsAre("http://b", "http://c"));
  EXPECT_THAT(ChosenMirrors({"none"}, {"http://a"}), ElementsAre());
}

TEST_F(MirrorsTest, GiveTheObject) {
  first_.Put(path_, kBytes);
  Mirrors mirrors = MirrorsOf({first_.url(), second_.url()});
  const auto bytes = mirrors.Fetch(RoundId(5), object_);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(**bytes, kBytes);
  EXPECT_EQ(second_.requests(), 0);
  const TransferStats stats = meter_.stats(clock_.MonotonicNow());
  EXPECT_EQ(stats.mirror_bytes, kBytes.size());
  EXPECT_EQ(stats.received_payload_bytes, kBytes.size());
  EXPECT_EQ(stats.mirror_failures, 0u);
}

// Each of these bytes comes from the first mirror, and the right ones from the second.
TEST_F(MirrorsTest, AreNotTrusted) {
  std::string flipped = kBytes;
  flipped[50000] ^= 1;
  for (const std::string& wrong :
       {std::string(), kBytes.substr(1), kBytes + "r", flipped, std::string(1 << 20, 'r')}) {
    first_.Put(path_, wrong);
    second_.Put(path_, kBytes);
    Mirrors mirrors = MirrorsOf({first_.url(), second_.url()});
    const auto bytes = mirrors.Fetch(RoundId(5), object_);
    ASSERT_TRUE(bytes.ok()) << wrong.size() << ": " << bytes.status();
    EXPECT_EQ(**bytes, kBytes);
  }
  EXPECT_EQ(meter_.stats(clock_.MonotonicNow()).mirror_failures, 5u);
}

TEST_F(MirrorsTest, AreLeftAloneAfterAFailureForLongerEachTime) {
  Mirrors mirrors = MirrorsOf({first_.url()});
  EXPECT_TRUE(mirrors.usable());
  absl::Duration last;
  for (int failure = 1; failure <= 3; ++failure) {
    EXPECT_EQ(mirrors.Fetch(RoundId(5), object_).status().code(), StatusCode::kUnavailable);
    EXPECT_FALSE(mirrors.usable());
    EXPECT_EQ(mirrors.Fetch(RoundId(5), object_).status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(first_.requests(), failure) << "while it is left alone";
    absl::Duration pause;
    for (; !mirrors.usable(); pause += absl::Seconds(1)) clock_.Advance(absl::Seconds(1));
    EXPECT_GE(pause, absl::Seconds(5));
    EXPECT_GT(pause, last);
    last = pause;
  }
  first_.Put(path_, kBytes);
  EXPECT_TRUE(mirrors.Fetch(RoundId(5), object_).ok());
  EXPECT_TRUE(mirrors.usable());
}

// One right object does not make up for many failures: a round does.
TEST_F(MirrorsTest, AreForgivenAfterARound) {
  Mirrors mirrors = MirrorsOf({first_.url()});
  const auto fail = [&] {
    first_.Put(path_, "other");
    EXPECT_FALSE(mirrors.Fetch(RoundId(5), object_).ok());
    absl::Duration pause;
    for (; !mirrors.usable(); pause += absl::Seconds(1)) clock_.Advance(absl::Seconds(1));
    return pause;
  };
  const auto serve = [&] {
    first_.Put(path_, kBytes);
    EXPECT_TRUE(mirrors.Fetch(RoundId(5), object_).ok());
  };
  EXPECT_LE(fail(), absl::Seconds(11));
  for (int i = 0; i < 3; ++i) {
    serve();
    EXPECT_GT(fail(), absl::Seconds(9));
  }
  mirrors.RoundOver();  // of the round in which it failed
  serve();
  mirrors.RoundOver();
  EXPECT_LE(fail(), absl::Seconds(11));
}

// Rounds that another mirror serves say nothing of one that is left alone.
TEST_F(MirrorsTest, AreNotForgivenForTheRoundsOfOthers) {
  second_.Put(path_, kBytes);
  Mirrors mirrors = MirrorsOf({first_.url(), second_.url()});
  for (int failure = 1; failure <= 4; ++failure) {
    EXPECT_TRUE(mirrors.Fetch(RoundId(5), object_).ok());
    EXPECT_EQ(first_.requests(), failure);
    for (int round = 0; round < 3; ++round) {
      mirrors.RoundOver();
      EXPECT_TRUE(mirrors.Fetch(RoundId(5), object_).ok());
    }
    // The least that the pause of so many failures may last.
    clock_.Advance(absl::Seconds(5) * (1 << (failure - 1)) - absl::Milliseconds(1));
    EXPECT_TRUE(mirrors.Fetch(RoundId(5), object_).ok());
    EXPECT_EQ(first_.requests(), failure);
    clock_.Advance(absl::Seconds(5) * (1 << (failure - 1)) + absl::Milliseconds(1));
  }
}

TEST_F(MirrorsTest, LeaveOutWhatALyingAggregatorAdds) {
  std::vector<std::string> many(100, "http://127.0.0.1:1");
  many[kMostMirrors] = first_.url();
  first_.Put(path_, kBytes);
  EXPECT_FALSE(MirrorsOf(many).Fetch(RoundId(5), object_).ok());
  Mirrors mirrors(client_, {.run_id = "run-1 HTTP/1.1\r\nX: ", .urls = {first_.url()}});
  EXPECT_FALSE(mirrors.usable());
  EXPECT_EQ(first_.requests(), 0);
}

TEST_F(MirrorsTest, LeaveOutWhatIsNoUrl) {
  Mirrors mirrors = MirrorsOf({"mirror.example", "ftp://mirror.example"});
  EXPECT_FALSE(mirrors.usable());
  EXPECT_EQ(mirrors.Fetch(RoundId(5), object_).status().code(), StatusCode::kUnavailable);
}

TEST_F(MirrorsTest, StopWithTheClient) {
  state_.End(absl::CancelledError("left"));
  Mirrors mirrors = MirrorsOf({first_.url()});
  EXPECT_EQ(mirrors.Fetch(RoundId(5), object_).status().code(), StatusCode::kCancelled);
}

TEST_F(MirrorsTest, AreUrlsOrNone) {
  EXPECT_TRUE(ValidateMirrors({}).ok());
  EXPECT_TRUE(ValidateMirrors({"none"}).ok());
  EXPECT_TRUE(ValidateMirrors({"http://a", "https://b:1/c"}).ok());
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"a"}, {"none", "http://a"}, {"http://a", ""}}) {
    const absl::Status status = ValidateMirrors(wrong);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  wrong[0] == "none" ? "give it alone" : " is not http://HOST"))
        << status;
  }
}

// Snapshots -------------------------------------------------------------------------------------

class MirroredSnapshotTest : public MirrorsTest {
 protected:
  MirroredSnapshotTest() {
    snapshot_.set_size_bytes(kBytes.size());
    snapshot_.set_sha256(object_.sha256());
    object_path_ = ObjectPath({.run_id = "run-1", .sha256 = snapshot_.sha256()});
    aggregator_.Change([](AggregatorState& state) { state.snapshot = kBytes; });
    client_.clock = Clock::Real();
  }
  absl::Status Fetch() {
    Mirrors mirrors = MirrorsOf({first_.url()});
    return FetchSnapshot(client_, connection_.get(), snapshot_, path_, &mirrors);
  }
  std::string Written() const { return *ReadFile(path_, 1 << 20); }

  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("snapshot");
  v1::SnapshotInfo snapshot_;
  std::string object_path_;
};

TEST_F(MirroredSnapshotTest, ComesFromTheMirror) {
  first_.Put(object_path_, kBytes);
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Written(), kBytes);
  EXPECT_TRUE(aggregator_.state().downloads.empty());
  EXPECT_EQ(meter_.stats(absl::ZeroDuration()).received_snapshot_bytes, kBytes.size());
}

TEST_F(MirroredSnapshotTest, CountsItsBytesAsTheyArrive) {
  const std::string bytes(4 << 20, 's');
  const Sha256Digest sha256 = Sha256(bytes);
  snapshot_.set_size_bytes(bytes.size());
  snapshot_.set_sha256(sha256.data(), sha256.size());
  first_.Put(ObjectPath({.run_id = "run-1", .sha256 = snapshot_.sha256()}), bytes);
  bool in_the_middle = false;
  const auto look = [&] {
    const TransferStats stats = meter_.stats(absl::ZeroDuration());
    EXPECT_EQ(stats.received_snapshot_bytes, stats.mirror_bytes);
    in_the_middle |= stats.mirror_bytes > 0 && stats.mirror_bytes < bytes.size();
    return false;
  };
  Mirrors mirrors(client_, {.run_id = "run-1", .urls = {first_.url()}}, look);
  ASSERT_TRUE(FetchSnapshot(client_, connection_.get(), snapshot_, path_, &mirrors).ok());
  EXPECT_TRUE(in_the_middle);
}

TEST_F(MirroredSnapshotTest, ComesFromTheAggregatorWhereTheMirrorHasNone) {
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Written(), kBytes);
}

TEST_F(MirroredSnapshotTest, GoesOnWhereTheMirrorEnded) {
  first_.Put(object_path_, kBytes.substr(0, 30000));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Written(), kBytes);
  EXPECT_EQ(aggregator_.state().downloads.at(0).offset(), 30000u);
}

TEST_F(MirroredSnapshotTest, BeginsAgainWhereTheMirrorLied) {
  first_.Put(object_path_, std::string(kBytes.size(), 'x'));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Written(), kBytes);
  EXPECT_EQ(aggregator_.state().downloads.at(0).offset(), 0u);
}

TEST_F(MirroredSnapshotTest, ContinuesAFileThatWasBegun) {
  ASSERT_TRUE(WriteFileAtomically(path_ + ".part", kBytes.substr(0, 30000)).ok());
  first_.Put(object_path_, kBytes);
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Written(), kBytes);
}

// Rounds ----------------------------------------------------------------------------------------

class MirroredFeedTest : public MirrorsTest {
 protected:
  MirroredFeedTest() {
    uint64_t hash = 0;
    for (uint64_t r = 0; r < 3; ++r) {
      rounds_.push_back(BuildRound(layout_, RoundId(r), hash));
      hash = Xxh3(rounds_.back().header_bytes());
    }
    client_.clock = Clock::Real();
  }
  std::vector<v1::SubscribeRoundsResponse> ObjectFrames(uint64_t r) const {
    std::vector<v1::SubscribeRoundsResponse> frames = testing::Frames(rounds_[r]);
    const v1::SubscribeRoundsResponse commit = frames.back();
    frames.assign(rounds_[r].payloads.size(), commit);
    for (int s = 0; s < rounds_[r].header.segments_size(); ++s) {
      v1::SegmentObject* const object = frames[s].mutable_object();
      object->set_segment(s);
      object->set_payload_bytes(rounds_[r].payloads[s].size());
      object->set_sha256(rounds_[r].header.segments(s).sha256());
    }
    frames.push_back(commit);
    return frames;
  }
  static void Append(std::vector<v1::SubscribeRoundsResponse> more,
                     std::vector<v1::SubscribeRoundsResponse>* frames) {
    for (auto& frame : more) frames->push_back(std::move(frame));
  }
  void Play(std::vector<StreamScript> streams) {
    aggregator_.Change([&](AggregatorState& state) {
      state.streams = {streams.begin(), streams.end()};
    });
    feed_.emplace(client_, connection_.get(), &layout_,
                  RoundFeed::Start{.run_id = "run-1",
                                   .next_round = RoundId(0),
                                   .rounds = RoundId(3),
                                   .mirrors = {first_.url()}},
                  &queue_);
  }
  void ExpectRounds() {
    for (uint64_t r = 0; r < 3; ++r) {
      const absl::StatusOr<RoundEvent> event = queue_.Pop();
      ASSERT_TRUE(event.ok()) << event.status();
      ASSERT_TRUE(std::holds_alternative<CommittedRound>(*event));
      EXPECT_EQ(std::get<CommittedRound>(*event).round(), RoundId(r));
    }
    EXPECT_EQ(queue_.Pop().status().code(), StatusCode::kOutOfRange);
  }

  const Layout layout_ = testing::SmallLayout();
  std::vector<BuiltRound> rounds_;
  EventQueue queue_{1, UINT64_MAX};
  std::optional<RoundFeed> feed_;
};

TEST_F(MirroredFeedTest, TakesResultsFromTheMirror) {
  std::vector<v1::SubscribeRoundsResponse> frames;
  for (uint64_t r = 0; r < 3; ++r) {
    first_.PutRound("run-1", rounds_[r]);
    Append(ObjectFrames(r), &frames);
  }
  Play({{frames, false, {}}});
  ExpectRounds();
  EXPECT_TRUE(aggregator_.state().subscriptions.at(0).objects());
  EXPECT_EQ(aggregator_.state().subscriptions.size(), 1u);
}

// The mirror has the first round only: the second is asked of the stream, at once.
TEST_F(MirroredFeedTest, TakesResultsFromTheStreamWhereTheMirrorFails) {
  first_.PutRound("run-1", rounds_[0]);
  std::vector<v1::SubscribeRoundsResponse> frames = ObjectFrames(0);
  Append(ObjectFrames(1), &frames);
  std::vector<v1::SubscribeRoundsResponse> rest = testing::Frames(rounds_[1]);
  Append(testing::Frames(rounds_[2]), &rest);
  Play({{frames, false, {}}, {rest, false, {}}});
  ExpectRounds();
  const AggregatorState state = aggregator_.state();
  ASSERT_EQ(state.subscriptions.size(), 2u);
  EXPECT_TRUE(state.subscriptions[0].objects());
  EXPECT_FALSE(state.subscriptions[1].objects());
  EXPECT_EQ(state.subscriptions[1].from_round(), 1u);
  EXPECT_EQ(meter_.stats(absl::ZeroDuration()).reconnects, 0u);
}

// Its pause is over before the stream is opened again, as after slow failures of several mirrors.
TEST_F(MirroredFeedTest, TakesTheRoundFromTheStreamHoweverSoonTheMirrorIsBack) {
  client_.clock = &clock_;
  first_.OnRequest([this] { clock_.Advance(absl::Hours(1)); });
  std::vector<v1::SubscribeRoundsResponse> rest = testing::Frames(rounds_[0]);
  for (const uint64_t r : {1, 2}) Append(testing::Frames(rounds_[r]), &rest);
  Play({{ObjectFrames(0), false, {}}, {rest, false, {}}, {rest, false, {}}});
  ASSERT_TRUE(queue_.Pop().ok());
  const AggregatorState state = aggregator_.state();
  ASSERT_GE(state.subscriptions.size(), 2u);
  EXPECT_TRUE(state.subscriptions[0].objects());
  EXPECT_FALSE(state.subscriptions[1].objects());
}

// An aggregator of a version without objects.
TEST_F(MirroredFeedTest, TakesFramesThatComeInstead) {
  std::vector<v1::SubscribeRoundsResponse> frames;
  for (uint64_t r = 0; r < 3; ++r) Append(testing::Frames(rounds_[r]), &frames);
  Play({{frames, false, {}}});
  ExpectRounds();
  EXPECT_EQ(first_.requests(), 0);
}

// The mirror's pause passes while the stream goes on.
TEST_F(MirroredFeedTest, ReturnsToTheMirror) {
  client_.clock = &clock_;
  first_.PutRound("run-1", rounds_[2]);
  std::vector<v1::SubscribeRoundsResponse> frames = testing::Frames(rounds_[0]);
  for (const uint64_t r : {1, 2}) Append(testing::Frames(rounds_[r]), &frames);
  Play({{ObjectFrames(0), false, {}}, {frames, false, {}}, {ObjectFrames(2), false, {}}});
  // Round 0 fills the queue, and the feed waits with round 1.
  for (ClientView view = state_.view(); !view.delivering; view = state_.view())
    state_.AwaitChange(view.version, absl::Seconds(20));
  clock_.Advance(absl::Minutes(1));
  ExpectRounds();
  const AggregatorState state = aggregator_.state();
  ASSERT_EQ(state.subscriptions.size(), 3u);
  EXPECT_FALSE(state.subscriptions[1].objects());
  EXPECT_TRUE(state.subscriptions[2].objects());
  EXPECT_EQ(state.subscriptions[2].from_round(), 2u);
}

}  // namespace
}  // namespace distro
