// A RoundManager under the test's control: a fake clock, explicit calls of Step(), and a real log
// on a disk that can fail.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/reason.h"
#include "common/base/version.h"
#include "gtest/gtest.h"
#include "server/round/round_manager.h"
#include "tests/server/round/run_fixture.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro::testing {

struct CountingObserver final : server::RunObserver {
  void OnRoundOpened(RoundId, int expected_now) override { expected = expected_now; }
  void OnUpdateReceived() override { ++updates; }
  void OnSegmentResult(const SegmentResult&, absl::Duration latency_now) override {
    latency = latency_now;
  }
  void OnRoundCommitted(const server::CommittedRoundInfo& info) override {
    ++rounds;
    last_header = *info.header;
    tokens += info.tokens;
    eval_loss = info.eval_loss;
  }
  void OnStateHashMismatch(int workers) override { mismatches += workers; }
  void OnMemberChange(absl::string_view reason) override { ++changes[std::string(reason)]; }
  void OnLateUpdate(absl::Duration lateness_now) override { lateness = lateness_now; }
  void OnUpdateTimed(const std::string& worker, RoundId, absl::Duration since_open) override {
    timed[worker] = since_open;
  }
  void OnLogError(absl::string_view operation) override { ++errors[std::string(operation)]; }
  std::map<std::string, int> errors, changes;
  std::map<std::string, absl::Duration> timed;
  std::optional<double> eval_loss;
  std::optional<absl::Duration> lateness;
  int expected = 0, updates = 0, rounds = 0, mismatches = 0;
  uint64_t tokens = 0;
  absl::Duration latency;
  v1::RoundHeader last_header;
};

inline constexpr uint64_t kOwnTokens = 1'000'000;

class ManagerTest : public ::testing::Test {
 protected:
  // Starts (again) on the same folder.
  void Start(const v1::RunConfig& config) {
    manager_ = nullptr;
    run_ = SmallRun(config);
    log_file_ = nullptr;
    log_file_ =
        *server::RoundLog::Open(folder_.File("rounds"), run_->layout.get(), 2, &disk_, &log_);
    admission_ = *server::AdmissionStore::Open(folder_.File("admission.pb"), &disk_);
    snapshots_ = *server::SnapshotStore::Open(folder_.path(), run_, &disk_, &log_);
    manager_ = *server::RoundManager::Create({run_,
                                              EpochId(++epoch_),
                                              {log_file_.get(), admission_.get(), snapshots_.get()},
                                              &clock_,
                                              &log_,
                                              &observer_,
                                              options_});
  }
  void Step() { EXPECT_TRUE(manager_->round_thread().Step().ok()); }
  v1::WorkerIdentity Identity(const std::string& name) {
    v1::WorkerIdentity identity;
    identity.set_name(name);
    identity.set_incarnation(incarnations_[name] + 1);
    return identity;
  }
  v1::JoinRequest JoinOf(const std::string& name) {
    v1::JoinRequest request;
    *request.mutable_worker() = Identity(name);
    request.set_data_fingerprint("data");
    if (run_->config.data() == v1::DATA_LOCAL) request.set_own_tokens(kOwnTokens);
    request.set_version(std::string(Version()));
    return request;
  }
  void Join(const std::string& name) {
    const auto joined = manager_->Join(JoinOf(name));
    ASSERT_TRUE(joined.ok()) << joined.status();
  }
  v1::HeartbeatRequest BeatOf(const std::string& name) {
    const server::RunStatus status = manager_->status();
    v1::HeartbeatRequest request;
    *request.mutable_worker() = Identity(name);
    request.set_sequence(++sequence_);
    request.set_next_round(status.round.value());
    request.set_log_hash(status.log_hash);
    return request;
  }
  void Beat(const std::string& name) { EXPECT_TRUE(manager_->Heartbeat(BeatOf(name)).ok()); }
  void Activate(const std::string& name) {
    Join(name);
    Beat(name);
  }
  v1::UploadHeader HeaderOf(const std::string& name, uint64_t round,
                            uint64_t state_hash = kInitialStateHash) {
    v1::UploadHeader header;
    *header.mutable_worker() = Identity(name);
    header.set_epoch(epoch_);
    header.set_round(round);
    header.set_state_hash(state_hash);
    return header;
  }
  absl::StatusOr<server::UploadTicket> Begin(const std::string& name, uint64_t round,
                                             uint64_t state_hash = kInitialStateHash) {
    return manager_->BeginUpload(HeaderOf(name, round, state_hash));
  }
  // Segments [first, end) of the worker's update.
  void UploadSegments(const server::UploadTicket& ticket, uint32_t first, uint32_t end) {
    for (uint32_t s = first; s < end; ++s) {
      const auto result = manager_->AddPayload(
          ticket, SegmentId(s),
          server::ReceivedPayload(UpdatePayload(*run_->layout, ticket.round, SegmentId(s), s)));
      ASSERT_TRUE(result.ok()) << result.status();
    }
  }
  void Upload(const std::string& name, uint64_t round, uint64_t state_hash = kInitialStateHash) {
    const auto ticket = Begin(name, round, state_hash);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    UploadSegments(*ticket, 0, run_->layout->segments());
  }
  // Starts a run with these workers and opens its first round.
  void OpenRound(v1::RunConfig config, const std::vector<std::string>& names) {
    Start(config);
    for (const std::string& name : names) Activate(name);
    Step();
  }
  // Uploads the updates of all of them, then commits.
  void Round(const std::vector<std::string>& names) {
    const uint64_t round = manager_->status().round.value();
    for (const std::string& name : names) Upload(name, round);
    Step();
    ASSERT_EQ(manager_->status().round, RoundId(round + 1));
  }
  static v1::RunConfig Config(int start_workers) {
    v1::RunConfig config = SmallConfig();
    config.set_start_workers(start_workers);
    return config;
  }
  v1::MemberState StateOf(const std::string& name) {
    for (const server::Worker& worker : manager_->status().workers) {
      if (worker.name == name) return worker.state;
    }
    return v1::MEMBER_STATE_UNSPECIFIED;
  }
  // Whether the last committed round includes the member in segment 0.
  bool Included(int member) const {
    const std::string& bits = observer_.last_header.segments(0).included();
    return (static_cast<uint8_t>(bits[member / 8]) >> (member % 8) & 1) != 0;
  }

  ScratchFolder folder_;
  FakeClock clock_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  CountingObserver observer_;
  FaultyDisk disk_;
  server::RoundManagerOptions options_{.suspect_after = absl::Seconds(1000),
                                       .lease = absl::Seconds(100)};
  std::shared_ptr<const server::RunIdentity> run_;
  std::unique_ptr<server::RoundLog> log_file_;
  std::unique_ptr<server::AdmissionStore> admission_;
  std::unique_ptr<server::SnapshotStore> snapshots_;
  std::unique_ptr<server::RoundManager> manager_;
  std::map<std::string, uint64_t> incarnations_;
  uint64_t epoch_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace distro::testing
