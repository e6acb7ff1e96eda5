// Hostile peers over real gRPC: each input gets its status and reason and is counted. Nothing else
// changes, and memory does not grow.
#include <malloc.h>

#include <functional>
#include <limits>

#include "common/base/reason.h"
#include "common/base/version.h"
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;
using google::protobuf::LogSilencer;
using ::testing::HasSubstr;

constexpr char kNotUtf8[] = "a\xff";

// One of two workers, so that the round stays open. The hostile one is c, or a in c's place.
class HostileTest : public ServerTest {
 protected:
  struct Case {
    const char* name;
    std::function<absl::Status()> call;
    StatusCode code;
    const char* reason;
  };

  // Both workers are needed, so that no rule takes the one away that breaks the rules again and
  // again.
  void SetUp() override { Begin(2); }
  void Begin(int min_workers) {
    v1::RunConfig config = SmallConfig();
    config.set_start_workers(2);
    config.set_min_workers(min_workers);
    Start(config);
    a_ = NewActive("a");
    b_ = NewActive("b");
    rounds_ = a_->Subscribe(&layout_);
    ASSERT_TRUE(rounds_->NextOpen().ok());
    ASSERT_TRUE(b_->Upload(0, {Payloads(0, 2)[0], nullptr, nullptr}).status.ok());
    admin_ = v1::AdminService::NewStub(TestChannel(server_->grpc_address()));
    for (uint32_t s = 0; s < 3; ++s) payloads_.push_back(*Payloads(0, 1)[s]);
    while (Run().reason() != "waiting for a") std::this_thread::yield();  // Open goes out before
  }

  v1::GetRunResponse Run() {
    grpc::ClientContext context;
    v1::GetRunResponse run;
    EXPECT_TRUE(admin_->GetRun(&context, {}, &run).ok());
    return run;
  }

  // The state that a call could change.
  std::string State() {
    grpc::ClientContext context;
    v1::ListWorkersResponse workers;
    EXPECT_TRUE(admin_->ListWorkers(&context, {}, &workers).ok());
    return Run().ShortDebugString() + workers.ShortDebugString();
  }
  std::string Page(const std::string& path) {
    const auto result = HttpGet(server_->http_address(), path, absl::Seconds(30), 64 << 20);
    return result.ok() ? result->body : "";
  }
  // The value of a series; -1: there is none.
  double Metric(const std::string& series) {
    const std::string page = Page("/metrics");
    const size_t at = page.find("\ndistro_aggregator_" + series + " ");
    return at == std::string::npos ? -1 : std::stod(page.substr(page.find(' ', at + 1)));
  }

  static v1::UploadUpdateRequest Frame(uint32_t segment, uint64_t offset, const std::string& data,
                                       uint64_t payload_bytes) {
    v1::UploadUpdateRequest request;
    request.mutable_frame()->set_segment(segment);
    request.mutable_frame()->set_offset(offset);
    request.mutable_frame()->set_data(data);
    request.mutable_frame()->set_payload_bytes(payload_bytes);
    return request;
  }
  v1::UploadUpdateRequest Whole(uint32_t segment) {
    return Frame(segment, 0, payloads_[segment], payloads_[segment].size());
  }
  v1::UploadUpdateRequest Header(const std::function<void(v1::UploadHeader&)>& change = nullptr) {
    v1::UploadUpdateRequest request;
    *request.mutable_header() = a_->Header(0);
    if (change) change(*request.mutable_header());
    return request;
  }
  // The status of a stream with these messages.
  absl::Status Send(const std::vector<v1::UploadUpdateRequest>& messages) {
    grpc::ClientContext context;
    auto stream = a_->stub()->UploadUpdate(&context);
    for (const v1::UploadUpdateRequest& message : messages) {
      if (!stream->Write(message)) break;
    }
    stream->WritesDone();
    v1::UploadUpdateResponse response;
    while (stream->Read(&response)) {
    }
    return FromGrpcStatus(stream->Finish());
  }
  absl::Status Join(const std::function<void(v1::JoinRequest&)>& change) {
    v1::JoinRequest request;
    request.mutable_worker()->set_name("c");
    request.mutable_worker()->set_incarnation(1);
    request.set_data_fingerprint("data");
    request.set_version(std::string(Version()));
    change(request);
    v1::JoinResponse response;
    grpc::ClientContext context;
    return FromGrpcStatus(a_->stub()->Join(&context, request, &response));
  }
  absl::Status Subscribe(const std::function<void(v1::SubscribeRoundsRequest&)>& change) {
    v1::SubscribeRoundsRequest request;
    *request.mutable_worker() = b_->identity();
    request.set_run_id(b_->joined().run_id());
    change(request);
    grpc::ClientContext context;
    auto reader = a_->stub()->SubscribeRounds(&context, request);
    v1::SubscribeRoundsResponse response;
    while (reader->Read(&response)) {
    }
    return FromGrpcStatus(reader->Finish());
  }

  // An upload of these messages.
  Case Refused(const char* name, std::vector<v1::UploadUpdateRequest> messages,
               StatusCode code = StatusCode::kInvalidArgument, const char* reason = "malformed") {
    return {name, [this, messages = std::move(messages)] { return Send(messages); }, code, reason};
  }
  std::vector<Case> Headers();
  std::vector<Case> Frames();
  std::vector<Case> Uploads() {
    std::vector<Case> cases = Headers();
    for (Case& frames : Frames()) cases.push_back(std::move(frames));
    return cases;
  }
  std::vector<Case> Calls();

  std::unique_ptr<TestWorker> a_, b_;
  std::unique_ptr<TestSubscription> rounds_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::vector<std::string> payloads_;  // [segments], of worker a
};

// Headers that are refused, and messages that are no header.
std::vector<HostileTest::Case> HostileTest::Headers() {
  const auto of = [this](const std::string& name) {
    return Header([&name](v1::UploadHeader& h) { h.mutable_worker()->set_name(name); });
  };
  const auto later = Header([](v1::UploadHeader& h) { h.set_round(7); });
  const auto older = Header([](v1::UploadHeader& h) { h.set_epoch(0); });
  return {
      Refused("a round in the future", {later}, StatusCode::kFailedPrecondition, "wrong_round"),
      Refused("another epoch", {older}, StatusCode::kFailedPrecondition, "wrong_epoch"),
      Refused("nobody's name", {of("nobody")}, StatusCode::kFailedPrecondition, "no_session"),
      Refused("capitals", {of("A")}),
      Refused("an underscore", {of("a_b")}),
      Refused("no name", {of("")}),
      Refused("a long name", {of(std::string(64, 'a'))}),
      Refused("a line in the name", {of("a\nb")}),
      Refused("a name that is not UTF-8", {of(kNotUtf8)}),
      Refused("nothing", {}),
      Refused("no message", {v1::UploadUpdateRequest()}),
      Refused("a frame first", {Whole(0)}),
      Refused("two headers", {Header(), Header()}),
  };
}

// Frames that are refused after a good header.
std::vector<HostileTest::Case> HostileTest::Frames() {
  const uint64_t size = payloads_[0].size(), middle = size / 2;
  const std::string half = payloads_[0].substr(0, middle), rest = payloads_[0].substr(middle);
  const auto header = Header(), first = Frame(0, 0, half, size);
  const auto second = Frame(0, middle, rest, size);
  return {
      Refused("no message after the header", {header, v1::UploadUpdateRequest()}),
      Refused("no such segment", {header, Frame(3, 0, "x", 1)}),
      Refused("an oversized frame",
              {header, Frame(0, 0, std::string(kMaxFrameBytes + 1, 'x'), size)}),
      Refused("an oversized payload", {header, Frame(0, 0, half, uint64_t{1} << 40)}),
      Refused("an empty frame", {header, Frame(0, 0, "", size)}),
      Refused("a frame twice", {header, first, first}),
      Refused("frames that overlap", {header, first, Frame(0, middle - 1, rest, size)}),
      Refused("frames out of order", {header, second, first}),
      Refused("a frame too many", {header, first, Frame(0, middle, rest + "x", size)}),
      Refused("another size", {header, first, Frame(0, middle, rest, size + 1)}),
      Refused("segments mixed", {header, first, Whole(1)}),
      Refused("half a payload", {header, first}),
  };
}

std::vector<HostileTest::Case> HostileTest::Calls() {
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  return {
      {"a name with capitals",
       [this] { return Join([](auto& r) { r.mutable_worker()->set_name("A"); }); }, kInvalid, ""},
      {"no incarnation",
       [this] { return Join([](auto& r) { r.mutable_worker()->set_incarnation(0); }); }, kInvalid,
       ""},
      {"a name that is not UTF-8",
       [this] { return Join([](auto& r) { r.mutable_worker()->set_name(kNotUtf8); }); }, kInvalid,
       "malformed"},
      {"no data", [this] { return Join([](auto& r) { r.clear_data_fingerprint(); }); },
       StatusCode::kFailedPrecondition, "other_data"},
      {"too long a name of data",
       [this] { return Join([](auto& r) { r.set_data_fingerprint(std::string(129, 'a')); }); },
       kInvalid, ""},
      {"an unknown run, followed", [this] { return Subscribe([](auto& r) { r.set_run_id("x"); }); },
       StatusCode::kFailedPrecondition, "other_run"},
      {"an unknown chain",
       [this] {
         return Subscribe([](auto& r) {
           r.set_from_round(1);
           r.set_last_hash(1);
         });
       },
       StatusCode::kFailedPrecondition, "diverged"},
      {"a subscriber's name that is not UTF-8",
       [this] { return Subscribe([](auto& r) { r.mutable_worker()->set_name(kNotUtf8); }); },
       kInvalid, "malformed"},
  };
}

TEST_F(HostileTest, UploadsAreRefusedWithAReasonThatIsCounted) {
  const LogSilencer silence;
  const std::string before = State();
  for (const Case& c : Uploads()) {
    const std::string series = std::string("updates_rejected_total{reason=\"") + c.reason + "\"}";
    const double counted = Metric(series);
    const absl::Status status = c.call();
    EXPECT_EQ(status.code(), c.code) << c.name << ": " << status;
    EXPECT_EQ(ReasonOf(status), c.reason) << c.name;
    EXPECT_EQ(Metric(series), counted + 1) << c.name;
    EXPECT_EQ(State(), before) << c.name;
  }
  EXPECT_EQ(Metric("inflight_bytes"), 0);
  EXPECT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_TRUE(b_->Upload(0, Payloads(0, 2)).status.ok());
  EXPECT_TRUE(rounds_->NextCommit().ok());
}

TEST_F(HostileTest, OtherCallsAreRefused) {
  const LogSilencer silence;
  const std::string before = State();
  for (const Case& c : Calls()) {
    const absl::Status status = c.call();
    EXPECT_EQ(status.code(), c.code) << c.name << ": " << status;
    if (*c.reason != '\0') {
      EXPECT_EQ(ReasonOf(status), c.reason) << c.name;
    }
    EXPECT_EQ(State(), before) << c.name;
  }
}

TEST_F(HostileTest, CannotUndoWhatIsTaken) {
  ASSERT_TRUE(Send({Header(), Whole(0)}).ok());
  const std::string other = *Payloads(0, 9)[0];
  const absl::Status conflict = Send({Header(), Frame(0, 0, other, other.size())});
  EXPECT_EQ(conflict.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(conflict), "conflict");
  const absl::Status abstains = Send({Header([](auto& h) { h.set_abstain(true); })});
  EXPECT_EQ(ReasonOf(abstains), "conflict");
}

class CutOffTest : public HostileTest {
 protected:
  void SetUp() override { Begin(1); }
};

TEST_F(CutOffTest, IsNoOffence) {
  const uint64_t size = payloads_[0].size();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ReasonOf(Send({Header(), Frame(0, 0, payloads_[0].substr(0, 9), size)})),
              "malformed");
  }
  EXPECT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
}

TEST_F(HostileTest, CannotAbstainWithFrames) {
  const v1::UploadUpdateRequest abstain = Header([](auto& h) { h.set_abstain(true); });
  const absl::Status status = Send({abstain, Whole(0)});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), "malformed");
}

TEST_F(HostileTest, ReadingsThatAreNotFiniteAreDroppedAndCounted) {
  const double before = Metric("dropped_values_total");
  v1::HeartbeatRequest request;
  request.set_next_round(0);
  request.mutable_telemetry()->set_loss(std::numeric_limits<double>::quiet_NaN());
  request.mutable_telemetry()->set_gradient_norm(std::numeric_limits<double>::infinity());
  request.mutable_telemetry()->set_evaluation_loss(-std::numeric_limits<double>::infinity());
  request.mutable_telemetry()->set_tokens(5);
  EXPECT_EQ(a_->Heartbeat(request).directive(), v1::DIRECTIVE_CONTINUE);
  EXPECT_TRUE(
      Send({Header([](auto& h) { h.set_loss(std::numeric_limits<double>::quiet_NaN()); })}).ok());
  EXPECT_EQ(Metric("dropped_values_total"), before + 4);
  const std::string page = Page("/metrics/workers");
  EXPECT_THAT(page, HasSubstr("distro_worker_tokens_total{worker=\"a\"} 5"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("distro_worker_loss{worker=\"a\"}")));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("distro_worker_eval_loss{worker=\"a\"}")));
}

size_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A call that left something behind for ever would leave its reactor at least, and what gRPC keeps
// of a call, more than 512 bytes. What gRPC and the allocator keep for each of their threads comes
// and goes by some 200 KiB, so the least of several looks counts.
TEST_F(HostileTest, MemoryIsFlatOverAThousandRepetitions) {
  const LogSilencer silence;
  constexpr int kRepetitions = 1000;
  constexpr int kLooks = 10;
  constexpr size_t kLeastLeak = 512;
  std::vector<Case> cases = Uploads();
  for (Case& c : Calls()) cases.push_back(std::move(c));
  const auto least_after = [&cases](int times) {
    size_t least = ~size_t{0};
    for (int look = 0; look < kLooks; ++look) {
      for (int i = 0; i < times / kLooks; ++i) {
        for (const Case& c : cases) EXPECT_FALSE(c.call().ok());
      }
      least = std::min(least, AllocatedBytes());
    }
    return least;
  };
  const size_t before = least_after(kRepetitions / 5);
  EXPECT_LT(least_after(kRepetitions),
            before + (kRepetitions - kRepetitions / kLooks) * kLeastLeak);
}

}  // namespace
}  // namespace distro::testing
