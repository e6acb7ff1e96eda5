#include "tests/server/call/rpc_sequence.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/version.h"
#include "common/feed/round_assembler.h"
#include "server/call/upload_call.h"
#include "server/limits/stream_limiter.h"
#include "server/log/round_log.h"
#include "server/round/round_manager.h"
#include "tests/server/call/link_sequence.h"
#include "tests/server/call/sequence_input.h"
#include "tests/server/round/run_fixture.h"
#include "tests/testing/fake_clock.h"

namespace distro::testing {
namespace {

using absl::StatusCode;

class SilentObserver final : public server::RunObserver, public server::TransferObserver {
 public:
  void OnRoundOpened(RoundId, int) override {}
  void OnUpdateReceived() override {}
  void OnSegmentResult(const SegmentResult&, absl::Duration) override {}
  void OnRoundCommitted(const server::CommittedRoundInfo&) override {}
  void OnStateHashMismatch(int) override {}
  void OnMemberChange(absl::string_view) override {}
  void OnLateUpdate(absl::Duration) override {}
  void OnUpdateTimed(const std::string&, RoundId, absl::Duration) override {}
  void OnLogError(absl::string_view) override {}
  void OnPhase(absl::string_view, absl::Duration) override {}
  void OnReceived(server::TransferKind, uint64_t) override {}
  void OnSent(server::TransferKind, uint64_t) override {}
  void OnDroppedValues(int) override {}
  void OnUploadRejected(absl::string_view reason) override {
    const auto& known = server::kRejectReasons;
    Require(std::ranges::find(known, reason) != known.end(), absl::StrCat("reason ", reason));
  }
};

constexpr uint64_t kInflightBytes = 150;  // two payloads of this layout, not three
constexpr uint64_t kRounds = 6;
const std::array<std::string, 6> kNames = {"a", "b", "c", "Not a name", "", "quite-another"};

struct Upload {
  std::unique_ptr<server::LimitedStream> stream;
  std::unique_ptr<server::UploadCall> call;
};

struct OpenSubscription {
  std::unique_ptr<Subscription> subscription;
  std::unique_ptr<RoundAssembler> assembler;
};

class Sequence {
 public:
  Sequence(const std::string& folder, Input input) : folder_(folder), input_(input) {
    v1::RunConfig config = SmallConfig();
    config.set_rounds(kRounds);
    config.set_start_workers(1 + input_.Below(2));
    config.set_max_workers(3);
    config.mutable_round_deadline()->set_seconds(20);
    run_ = SmallRun(config);
    Start();
  }
  ~Sequence() {
    End();
    Reopen();
  }

  // Rounds that were committed.
  uint64_t Run() {
    for (int calls = 0; calls < 200 && !input_.empty(); ++calls) Call(input_.Below(16));
    return head_.value();
  }

 private:
  void Start() {
    Reopen();
    auto manager = server::RoundManager::Create(
        {run_,
         EpochId(++epoch_),
         {rounds_.get(), admission_.get(), snapshots_.get()},
         &clock_,
         &log_,
         &observer_,
         {.suspect_after = absl::Seconds(30), .lease = absl::Seconds(60)}});
    Require(manager.ok(), manager.status().ToString());
    manager_ = *std::move(manager);
  }
  void Reopen() {
    server::Disk* const disk = server::Disk::Real();
    rounds_ = nullptr;
    auto rounds = server::RoundLog::Open(folder_ + "/rounds", run_->layout.get(),
                                         static_cast<int>(kRounds), disk, &log_);
    Require(rounds.ok(), rounds.status().ToString());
    auto admission = server::AdmissionStore::Open(folder_ + "/admission.pb", disk);
    Require(admission.ok(), admission.status().ToString());
    admission_ = *std::move(admission);
    auto snapshots = server::SnapshotStore::Open(folder_, run_, disk, &log_);
    Require(snapshots.ok(), snapshots.status().ToString());
    snapshots_ = *std::move(snapshots);
    rounds_ = *std::move(rounds);
    Require(rounds_->next_round() >= head_, "a committed round is gone");
    head_ = rounds_->next_round();
    for (const auto& [round, hash] : chain_) Require(rounds_->HashBefore(round) == hash, "chain");
  }
  void End() {
    uploads_.clear();
    subscriptions_.clear();
    links_.Clear();
    Require(limiter_.inflight()->used() == 0, "bytes that nobody holds are counted");
    manager_ = nullptr;
  }

  void Call(uint32_t kind) {
    switch (kind) {
      case 0:
        return Join();
      case 1:
      case 2:
        return Heartbeat();
      case 3:
      case 4:
        return BeginUpload();
      case 5:
      case 6:
      case 7:
      case 8:
        return Frame();
      case 9:
        return EndUpload();
      case 10:
        return Subscribe();
      case 11:
        return Follow();
      case 12:
        return Leave();
      case 13:
        return Pass();
      case 14:
        return Rarely();
      default:
        return Step();
    }
  }

  v1::WorkerIdentity Identity() {
    v1::WorkerIdentity identity;
    const uint8_t byte = input_.Byte();
    identity.set_name(byte < 0xC0 ? kNames[byte % 3] : kNames[byte % kNames.size()]);
    identity.set_incarnation(byte < 0x80 ? 1 : byte % 4);
    return identity;
  }

  void Join() {
    v1::JoinRequest request;
    *request.mutable_worker() = Identity();
    const uint8_t byte = input_.Byte();
    request.set_version(byte % 16 == 3 ? "0.0" : std::string(Version()));
    request.set_data_fingerprint(byte < 0xF0 ? "data" : "other");
    if (byte % 16 == 1) request.set_run_id("another");
    request.set_epoch(byte % 16 == 2 ? epoch_ : 0);
    RequireCode(
        manager_->Join(request).status(),
        {StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition, StatusCode::kAborted,
         StatusCode::kResourceExhausted, StatusCode::kUnavailable, StatusCode::kPermissionDenied},
        "Join");
  }

  uint64_t HashBefore(RoundId round) {
    return rounds_->has_start() && round <= head_ ? rounds_->HashBefore(round) : 0;
  }

  void Heartbeat() {
    v1::HeartbeatRequest request;
    *request.mutable_worker() = Identity();
    const uint8_t byte = input_.Byte();
    request.set_sequence(byte == 0 ? 0 : ++sequence_);
    const RoundId head = manager_->status().round;
    const RoundId next(byte < 0xC0 ? head.value() : byte % 8);
    if (byte != 1) request.set_next_round(next.value());
    request.set_log_hash(byte % 16 == 2 ? 77 : HashBefore(next));
    request.mutable_telemetry()->set_loss(byte % 2 == 0 ? 1.5
                                                        : std::numeric_limits<double>::quiet_NaN());
    (void)manager_->Heartbeat(request);
  }

  void BeginUpload() {
    Upload& upload = uploads_[input_.Below(4)];
    upload = {};
    auto stream = limiter_.Open(server::StreamKind::kUpload, [](const absl::Status&) {});
    RequireCode(stream.status(), {StatusCode::kResourceExhausted}, "Open");
    if (!stream.ok()) return;
    upload.stream = *std::move(stream);
    upload.call =
        std::make_unique<server::UploadCall>(manager_.get(), limiter_.inflight(), &observer_);
    v1::UploadUpdateRequest request;
    v1::UploadHeader* header = request.mutable_header();
    *header->mutable_worker() = Identity();
    const uint8_t byte = input_.Byte();
    header->set_epoch(byte % 16 == 1 ? 0 : byte == 0x66 ? epoch_ + 1 : epoch_);
    claimed_ = claimed_ || byte == 0x66;
    header->set_round(byte % 16 == 2 ? byte : manager_->status().round.value());
    header->set_abstain(byte % 16 == 3);
    header->set_state_hash(byte % 16 == 4 ? 5 : kInitialStateHash);
    if (byte % 16 == 5) header->add_tensor_hashes(1);
    Send(&upload, request);
  }

  void Frame() {
    Upload& upload = uploads_[input_.Below(4)];
    const uint8_t shape = input_.Byte();
    const SegmentId segment(shape < 0xF0 ? shape % run_->layout->segments() : shape);
    v1::UploadUpdateRequest request;
    if (shape == 0xEF) return Send(&upload, request);
    v1::UploadFrame* frame = request.mutable_frame();
    frame->set_segment(segment.value());
    if (segment.value() >= run_->layout->segments()) {
      frame->set_data("x");
      frame->set_payload_bytes(1);
      return Send(&upload, request);
    }
    const uint8_t content = input_.Byte();
    std::string payload = *UpdatePayload(*run_->layout, manager_->status().round, segment,
                                         content & 3, content % 16 == 15 ? 3 : 4);
    if (content % 16 == 14) payload[content % payload.size()] ^= 1;
    frame->set_payload_bytes(content == 0x80 ? input_.Byte() : payload.size());
    const size_t half = payload.size() / 2;
    const size_t begin = (shape & 0x60) == 0x40 ? half : 0;
    const size_t end = (shape & 0x60) == 0x20 ? half : payload.size();
    frame->set_offset(content == 0x81 ? input_.Byte() : begin);
    frame->set_data(payload.substr(begin, end - begin));
    Send(&upload, request);
  }

  void Send(Upload* upload, const v1::UploadUpdateRequest& request) {
    if (upload->call == nullptr) return;
    const auto answer = upload->call->Take(request, upload->stream.get());
    if (!answer.ok()) CheckUpload(answer.status());
    if (!answer.ok()) *upload = {};
    Require(limiter_.inflight()->used() <= kInflightBytes, "more bytes arriving than allowed");
  }
  void CheckUpload(const absl::Status& status) {
    RequireCode(status,
                {StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition,
                 StatusCode::kAborted, StatusCode::kAlreadyExists, StatusCode::kUnavailable,
                 StatusCode::kResourceExhausted, StatusCode::kPermissionDenied},
                "UploadUpdate");
    Require(!ReasonOf(status).empty(), status.ToString());
  }
  void EndUpload() {
    Upload& upload = uploads_[input_.Below(4)];
    if (upload.call != nullptr) {
      const absl::Status status = upload.call->End();
      if (!status.ok()) CheckUpload(status);
    }
    upload = {};
  }

  void Subscribe() {
    v1::SubscribeRoundsRequest request;
    *request.mutable_worker() = Identity();
    const uint8_t byte = input_.Byte();
    const RoundId head = manager_->status().round;
    const RoundId from(byte < 0x80 ? head.value() : byte % 8);
    request.set_run_id(byte % 16 == 1 ? "another" : run_->run_id);
    request.set_from_round(from.value());
    request.set_last_hash(byte % 16 == 2 ? 77 : HashBefore(from));
    auto subscription = manager_->Subscribe(request);
    RequireCode(subscription.status(),
                {StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition,
                 StatusCode::kAborted, StatusCode::kUnavailable, StatusCode::kPermissionDenied},
                "Subscribe");
    if (!subscription.ok()) return;
    (*subscription)->Listen({});
    OpenSubscription& open = subscriptions_[byte % 3];
    open = {*std::move(subscription), std::make_unique<RoundAssembler>(run_->layout.get(), from)};
  }

  void Follow() {
    OpenSubscription& open = subscriptions_[input_.Below(3)];
    for (int frames = input_.Below(32); frames > 0 && open.subscription != nullptr; --frames) {
      auto bytes = open.subscription->Next();
      RequireCode(bytes.status(),
                  {StatusCode::kOutOfRange, StatusCode::kAborted, StatusCode::kCancelled,
                   StatusCode::kUnavailable, StatusCode::kFailedPrecondition,
                   StatusCode::kPermissionDenied},
                  "SubscribeRounds");
      if (!bytes.ok()) open = {};
      if (!bytes.ok() || *bytes == nullptr) return;
      v1::SubscribeRoundsResponse frame;
      Require(frame.ParseFromString(**bytes), "a frame that cannot be parsed");
      auto event = open.assembler->Add(std::move(frame));
      Require(event.ok(), event.status().ToString());
      if (const auto* commit = std::get_if<CommittedRound>(&*event)) Committed(*commit);
    }
  }
  void Committed(const CommittedRound& commit) {
    const RoundId next = commit.round().Next();
    const auto [it, added] = chain_.emplace(next, commit.hash);
    Require(added || it->second == commit.hash, "two followers hold different rounds");
    Require(rounds_->HashBefore(next) == commit.hash,
            "a subscription holds another round than the log");
  }

  void Leave() {
    v1::LeaveRequest request;
    *request.mutable_worker() = Identity();
    request.set_reason(std::string(input_.Byte(), 'x'));
    manager_->Leave(request);
  }

  void Step() {
    const auto next = manager_->round_thread().Step();
    if (claimed_ && ReasonOf(next.status()) == "fenced") {
      End();
      Start();
    } else {
      Require(next.ok(), next.status().ToString());
    }
    const RoundId head = rounds_->next_round();
    Require(head >= head_ && head.value() <= kRounds, "the head of the log");
    head_ = head;
  }
  void Pass() {
    constexpr int64_t kSeconds[] = {0, 1, 5, 19, 21, 61};
    clock_.Advance(absl::Seconds(kSeconds[input_.Below(6)]));
    limiter_.StopStalled();
  }
  void Rarely() {
    const uint8_t byte = input_.Byte();
    if (byte >= 192) return links_.Call(&input_, manager_->LinkNeeds());
    if (byte >= 64) return Step();
    if (byte >= 16) return Administer(byte);
    if (byte % 4 == 0) manager_->Drain();
    if (byte % 4 == 1) return;
    End();
    Start();
  }

  void Administer(uint8_t byte) {
    const std::string& name = kNames[byte / 8 % kNames.size()];
    switch (byte % 5) {
      case 0:
        return RequireCode(manager_->decisions().Pause(std::string(input_.Byte(), 'x')),
                           {StatusCode::kInvalidArgument}, "Pause");
      case 1:
        return RequireCode(manager_->decisions().Resume(), {}, "Resume");
      case 2:
        return RequireCode(manager_->decisions().Evict(name, "test"),
                           {StatusCode::kInvalidArgument}, "Evict");
      case 3:
        return RequireCode(manager_->decisions().Admit(name),
                           {StatusCode::kInvalidArgument, StatusCode::kNotFound}, "Admit");
      default:
        return ReportState();
    }
  }
  void ReportState() {
    v1::ReportStateRequest request;
    const uint8_t byte = input_.Byte();
    const RoundId round(byte % 8);
    request.set_run_id(byte % 16 == 1 ? "another" : run_->run_id);
    request.set_round(round.value());
    request.set_log_hash(byte % 16 == 2 ? 77 : HashBefore(round));
    for (uint32_t i = 0; i < byte % 5u; ++i) request.add_tensor_hashes(i);
    RequireCode(manager_->ReportState(request),
                {StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition}, "ReportState");
  }

  const std::string folder_;
  Input input_;
  FakeClock clock_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  SilentObserver observer_;
  server::StreamLimiter limiter_{
      {.inflight_bytes = kInflightBytes, .worker_bytes_per_second = 64 << 10, .streams = 3},
      &clock_};
  LinkSequence links_{&limiter_, &clock_};
  std::shared_ptr<const server::RunIdentity> run_;
  std::unique_ptr<server::RoundLog> rounds_;
  std::unique_ptr<server::AdmissionStore> admission_;
  std::unique_ptr<server::SnapshotStore> snapshots_;
  std::unique_ptr<server::RoundManager> manager_;
  std::map<uint32_t, Upload> uploads_;
  std::map<uint32_t, OpenSubscription> subscriptions_;
  std::map<RoundId, uint64_t> chain_;  // hashes that followers saw
  RoundId head_;
  uint64_t epoch_ = 0;
  bool claimed_ = false;  // somebody said that there is a higher epoch
  uint64_t sequence_ = 0;
};

}  // namespace

uint64_t RunRpcSequence(const std::string& folder, const uint8_t* bytes, size_t size) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const uint64_t rounds = Sequence(folder, Input(bytes, size)).Run();
  std::filesystem::remove_all(folder);
  return rounds;
}

}  // namespace distro::testing
