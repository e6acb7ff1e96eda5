// The archiver against a real aggregator in this process.
#include "tools/archiver/archiver.h"

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/model/checkpoint/hf_folder.h"
#include "gmock/gmock.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/server/service/following_worker.h"
#include "tests/server/service/server_fixture.h"
#include "tests/testing/loopback.h"
#include "tests/testing/scratch_folder.h"
#include "tools/archiver/archive.h"
#include "tools/archiver/archive_folder.h"

namespace distro::tools {
namespace {

using absl::StatusCode;
using ::distro::testing::FollowingWorker;
using ::distro::testing::HeldPort;
using ::distro::testing::ServerTest;
using ::distro::testing::SmallConfig;
using ::distro::testing::TestWorker;
using ::testing::HasSubstr;

constexpr uint64_t kRounds = 8;

class ArchiverTest : public ServerTest {
 protected:
  void SetUp() override {
    listen_ = port_.address();
    StartRun();
  }

  static v1::RunConfig Config() {
    v1::RunConfig config = SmallConfig();
    config.set_start_workers(1);
    config.set_probation_rounds(0);
    config.set_rounds(kRounds);
    return config;
  }

  // An aggregator on the data folder, and a worker that continues what the folder holds.
  void StartRun() {
    StopRun();
    Start(Config());
    worker_ = NewWorker("a", ++incarnation_);
    ASSERT_TRUE(worker_->Join().ok());
    TensorBuffer parameters(layout_);
    for (int t = 0; t < parameters.tensors(); ++t)
      parameters.tensor(t)[0] = static_cast<float>(t + 1);
    replica_.emplace(&layout_, backend_.get(), std::move(parameters), RoundId(0), 0);
    const uint64_t head = worker_->joined().head_round();
    // Only when there is something to read: a stream of which nothing was read may reach the server
    // after the next one.
    const bool behind = replica_->next_round().value() < head;
    auto log = behind ? worker_->Subscribe(&layout_) : nullptr;
    while (replica_->next_round().value() < head) {
      const auto round = log->NextCommit();
      ASSERT_TRUE(round.ok()) << round.status();
      ASSERT_TRUE(replica_->Apply(*round).ok());
    }
    worker_->Heartbeat(head, replica_->log_hash());
    run_.emplace(worker_.get(), &*replica_);
  }
  void StopRun() {
    run_.reset();
    worker_ = nullptr;
    server_ = nullptr;
  }

  void AdvanceTo(uint64_t round, uint64_t seed = 0, uint64_t wrong_hash = 0) {
    const absl::Status status = run_->AdvanceTo(round, seed, wrong_hash);
    ASSERT_TRUE(status.ok()) << status;
  }

  ArchiverOptions Options() const {
    ArchiverOptions options;
    options.channel.aggregator = server_->grpc_address();
    options.channel.insecure = true;
    options.data_dir = folder_.File("archive");
    options.publish = {.dir = folder_.File("published"), .keep = 2};
    options.snapshot_interval_rounds = 3;
    options.threads = 2;
    options.once = true;
    options.backoff = {.initial = absl::Milliseconds(5), .max = absl::Milliseconds(20)};
    return options;
  }

  // Runs from start to end without interruption; its readings are in metrics_.
  absl::Status Run(const ArchiverOptions& options) {
    metrics_ = std::make_unique<ArchiverMetrics>();
    auto archiver = Archiver::Create(options, metrics_.get(), &archiver_log_, Clock::Real());
    return archiver.ok() ? (*archiver)->Run() : archiver.status();
  }

  ArchiveState Held() {
    auto folder = ArchiveFolder::Open(folder_.File("archive"));
    EXPECT_TRUE(folder.ok()) << folder.status();
    const auto held = (*folder)->Load();
    EXPECT_TRUE(held.ok() && held->has_value()) << held.status();
    return **held;
  }
  // The archiver has the bits of the run.
  void ExpectSame() {
    const ArchiveState held = Held();
    EXPECT_EQ(held.snapshot.round(), replica_->next_round().value());
    EXPECT_EQ(held.snapshot.log_hash(), replica_->log_hash());
    EXPECT_EQ(held.snapshot.state_hash(), replica_->StateHash());
  }
  std::vector<uint64_t> StoredRounds() {
    const auto admin = v1::AdminService::NewStub(testing::TestChannel(server_->grpc_address()));
    grpc::ClientContext context;
    v1::GetRunResponse response;
    EXPECT_TRUE(admin->GetRun(&context, v1::GetRunRequest(), &response).ok());
    std::vector<uint64_t> rounds;
    for (const v1::SnapshotInfo& snapshot : response.snapshots())
      rounds.push_back(snapshot.round());
    return rounds;
  }
  std::string Log() const {
    absl::MutexLock lock(&log_mu_);
    return log_text_;
  }
  void AwaitLog(const std::string& text) const {
    absl::MutexLock lock(&log_mu_);
    const auto there = [&] {
      log_mu_.AssertHeld();
      return absl::StrContains(log_text_, text);
    };
    EXPECT_TRUE(log_mu_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(20)));
  }
  std::string RecordPath(uint64_t round) const {
    return folder_.File(absl::StrCat("data/rounds/000000000", round, ".record"));
  }
  // One byte of a payload.
  void DamageRecord(uint64_t round) {
    std::string bytes = *ReadFile(RecordPath(round));
    bytes.at(20) ^= 1;
    ASSERT_TRUE(WriteFileAtomically(RecordPath(round), bytes).ok());
  }

  const std::unique_ptr<Backend> backend_ = MakeCpuBackend();
  uint64_t incarnation_ = 0;
  const HeldPort port_;
  std::unique_ptr<TestWorker> worker_;
  std::optional<Replica> replica_;
  std::optional<FollowingWorker> run_;
  std::unique_ptr<ArchiverMetrics> metrics_;
  mutable absl::Mutex log_mu_;
  std::string log_text_ ABSL_GUARDED_BY(log_mu_);
  distro::Log archiver_log_{LogLevel::kInfo, Clock::Real(), [this](absl::string_view line) {
                              absl::MutexLock lock(&log_mu_);
                              log_text_.append(line.data(), line.size());
                            }};
};

TEST_F(ArchiverTest, CatchesUpOnce) {
  AdvanceTo(4);
  const absl::Status status = Run(Options());
  ASSERT_TRUE(status.ok()) << status;
  ExpectSame();
  EXPECT_EQ(metrics_->replayed_rounds->value(), 4);
  EXPECT_EQ(metrics_->state_hash_mismatches->value(), 0);
  const auto folder = OpenCheckpointFolder(folder_.File("published/round-4"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(StoredRounds().front(), 3);  // the newest that a committed round confirms
}

TEST_F(ArchiverTest, RunsPublishCommand) {
  AdvanceTo(7);
  ArchiverOptions options = Options();
  const std::string list = folder_.File("list");
  options.publish.command = absl::StrCat(
      "test -s $DISTRO_FOLDER/model.safetensors && echo $DISTRO_RUN $DISTRO_ROUND "
      "$DISTRO_STATE_HASH >>",
      list, " && echo copied");
  ASSERT_EQ(Run(options), absl::OkStatus());
  // A later folder takes the place of one that still waited for the command.
  EXPECT_THAT(*ReadFile(list), HasSubstr(absl::StrCat(worker_->joined().run_id(), " 7 ",
                                                      ToHex(replica_->StateHash()), "\n")));
  EXPECT_THAT(Log(), HasSubstr("publish command prints round=7 line=copied"));
  EXPECT_THAT(Log(), HasSubstr("publish command done round=7"));
  EXPECT_EQ(metrics_->failures_command->value(), 0);
}

TEST_F(ArchiverTest, EndsWithFailureOfPublishCommand) {
  AdvanceTo(4);
  ArchiverOptions options = Options();
  options.publish.command = "echo the disk is full >&2; exit 7";
  const absl::Status status = Run(options);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--publish_command: failed for"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("round-4"));
  EXPECT_THAT(Log(), HasSubstr("ended with 7: the disk is full"));
  EXPECT_GT(metrics_->failures_command->value(), 0);
  ExpectSame();
  options.publish.command = "echo published";
  EXPECT_EQ(Run(options), absl::OkStatus());
  EXPECT_THAT(Log(), HasSubstr("line=published")) << "for the folder of before";
}

// The folder was published at the end of an interval, which is also the end.
TEST_F(ArchiverTest, RunsTheLastCommandAgainWhereAnIntervalEnds) {
  AdvanceTo(6);
  ArchiverOptions options = Options();
  options.publish.command = "exit 7";
  EXPECT_FALSE(Run(options).ok());
  options.publish.command = "echo published $DISTRO_ROUND";
  EXPECT_EQ(Run(options), absl::OkStatus());
  EXPECT_THAT(Log(), HasSubstr("published 6"));
}

// As on a full disk: a file is in the folder's place.
TEST_F(ArchiverTest, EndsWithFailureToPublish) {
  AdvanceTo(4);
  const ArchiverOptions options = Options();
  ASSERT_TRUE(CreateFolders(options.publish.dir).ok());
  const std::string published = options.publish.dir + "/round-4";
  ASSERT_TRUE(WriteFileAtomically(published, "in the way").ok());
  const absl::Status status = Run(options);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--publish_dir: round 4 is not published; start it again: "));
  EXPECT_GT(metrics_->failures_publish->value(), 0);
  ExpectSame();
  std::filesystem::remove(published);
  EXPECT_EQ(Run(options), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_directory(published));
}

TEST_F(ArchiverTest, FollowsUntilTheRunIsDone) {
  ArchiverOptions options = Options();
  options.once = false;
  absl::Status status;
  std::thread thread([&] { status = Run(options); });
  AdvanceTo(kRounds);
  thread.join();
  ASSERT_TRUE(status.ok()) << status;
  ExpectSame();
  EXPECT_TRUE(std::filesystem::exists(folder_.File("published/round-8")));
  EXPECT_EQ(StoredRounds().front(), kRounds - 1);  // nobody will ever say what the last round made
}

// In round 3 the only worker reports another hash: nothing confirms the snapshot that is due
// before it.
TEST_F(ArchiverTest, TakesALaterRoundIfTheRecordDoesNotConfirm) {
  AdvanceTo(3);
  AdvanceTo(4, 0, /*wrong_hash=*/1);
  AdvanceTo(6);
  ASSERT_TRUE(Run(Options()).ok());
  ExpectSame();
  EXPECT_THAT(Log(),
              HasSubstr("the record does not confirm its state hash; a later one may round=3"));
  EXPECT_THAT(Log(), HasSubstr("own copy saved round=4"));
  EXPECT_EQ(StoredRounds().front(), 5);
  EXPECT_EQ(metrics_->failures_upload->value(), 0);
}

TEST_F(ArchiverTest, GoesOnWhereItWas) {
  AdvanceTo(3);
  ASSERT_TRUE(Run(Options()).ok());
  AdvanceTo(5);
  ASSERT_TRUE(Run(Options()).ok());
  EXPECT_EQ(metrics_->replayed_rounds->value(), 2);
  ExpectSame();
  ASSERT_TRUE(Run(Options()).ok());
  EXPECT_EQ(metrics_->replayed_rounds->value(), 0);
}

// Without an interval of its own the bytes of the results decide, and they are counted over a
// restart.
TEST_F(ArchiverTest, PublishesByBytes) {
  ArchiverOptions options = Options();
  options.snapshot_interval_rounds = 0;
  AdvanceTo(4);
  ASSERT_TRUE(Run(options).ok());
  EXPECT_EQ(metrics_->folders_published->value(), 1);  // four small results: only the end
  {
    auto folder = ArchiveFolder::Open(folder_.File("archive"));
    ArchiveState state = **(*folder)->Load();
    EXPECT_EQ(state.result_bytes, 0);
    state.result_bytes = 4 * layout_.elements() - 1;
    ASSERT_TRUE((*folder)->SaveState(state, {}).ok());
  }
  AdvanceTo(7);
  ASSERT_TRUE(Run(options).ok());
  EXPECT_EQ(metrics_->folders_published->value(), 2);
  EXPECT_TRUE(std::filesystem::exists(folder_.File("published/round-5")));
  EXPECT_TRUE(std::filesystem::exists(folder_.File("published/round-7")));
}

TEST_F(ArchiverTest, NamesAWorkerWhoseHashDiffers) {
  AdvanceTo(1);
  AdvanceTo(2, 0, /*wrong_hash=*/1);
  ASSERT_TRUE(Run(Options()).ok());
  EXPECT_EQ(metrics_->state_hash_mismatches->value(), 1);
  EXPECT_THAT(Log(), HasSubstr("workers report other state hashes than this replica's round=1"));
  EXPECT_THAT(Log(), HasSubstr("workers=a"));
}

TEST_F(ArchiverTest, StartsAgainWhenItsCopyIsDamaged) {
  AdvanceTo(4);
  ASSERT_TRUE(Run(Options()).ok());
  const std::string path = folder_.File("archive/snapshot-4.safetensors");
  absl::StatusOr<std::string> bytes = ReadFile(path);
  bytes->back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, *bytes).ok());
  AdvanceTo(5);
  ASSERT_TRUE(Run(Options()).ok());
  ExpectSame();
  EXPECT_EQ(metrics_->replayed_rounds->value(), 2);  // from the aggregator's snapshot of round 3
  EXPECT_TRUE(std::filesystem::exists(folder_.File("archive/set_aside/state")));
}

// The aggregator's folder is an older copy, and its run took another way since.
TEST_F(ArchiverTest, StartsAgainWhenTheLogWentBack) {
  AdvanceTo(2);
  StopRun();
  std::filesystem::copy(folder_.File("data"), folder_.File("backup"),
                        std::filesystem::copy_options::recursive);
  StartRun();
  AdvanceTo(5);
  ASSERT_TRUE(Run(Options()).ok());
  ExpectSame();
  StopRun();
  std::filesystem::remove_all(folder_.File("data"));
  std::filesystem::rename(folder_.File("backup"), folder_.File("data"));
  clock_.Advance(
      absl::Seconds(2));  // who restores a copy needs longer: its epoch is the higher one
  StartRun();
  AdvanceTo(6, /*seed=*/7);
  const absl::Status status = Run(Options());
  ASSERT_TRUE(status.ok()) << status;
  ExpectSame();
  EXPECT_THAT(Log(), HasSubstr("diverged"));
}

// With a copy that is ahead, and with one that is as far: nothing that comes would show either.
TEST_F(ArchiverTest, StartsAgainWhenTheLogThatWentBackIsNotAhead) {
  AdvanceTo(2);
  StopRun();
  const auto whole = std::filesystem::copy_options::recursive;
  std::filesystem::copy(folder_.File("data"), folder_.File("backup"), whole);
  StartRun();
  AdvanceTo(5);
  ASSERT_TRUE(Run(Options()).ok());
  for (const uint64_t round : {4, 5}) {
    StopRun();
    std::filesystem::remove_all(folder_.File("data"));
    std::filesystem::copy(folder_.File("backup"), folder_.File("data"), whole);
    clock_.Advance(absl::Seconds(2));
    StartRun();
    AdvanceTo(round, /*seed=*/round);
    const absl::Status status = Run(Options());
    ASSERT_TRUE(status.ok()) << status;
    ExpectSame();
  }
  EXPECT_THAT(Log(), HasSubstr("diverged: its round 5 is none of this log, which is at 4"));
}

// Another archiver's snapshots made the log drop the rounds after this one's copy.
TEST_F(ArchiverTest, StartsAgainWhenItsRoundsAreGone) {
  AdvanceTo(1);
  ASSERT_TRUE(Run(Options()).ok());
  ArchiverOptions other = Options();
  other.data_dir = folder_.File("other");
  for (const uint64_t round : {3, 6}) {
    AdvanceTo(round);
    ASSERT_TRUE(Run(other).ok());
  }
  ASSERT_TRUE(Run(Options()).ok());
  ExpectSame();
  EXPECT_EQ(metrics_->replayed_rounds->value(), 1);  // from the other one's snapshot of round 5
  EXPECT_THAT(Log(), HasSubstr("newest snapshot reason=\"its round 1 is before"));
}

// What an archiver without a copy makes of a run whose snapshot has so many bytes; Unavailable if
// it would fetch it.
absl::Status OpenWithSnapshotOf(uint64_t bytes, v1::GetRunResponse run) {
  testing::ScratchFolder data;
  const auto folder = ArchiveFolder::Open(data.path());
  DISTRO_RETURN_IF_ERROR(folder.status());
  Log log(LogLevel::kError);
  run.add_snapshots()->set_size_bytes(bytes);
  const auto fetch = [](const v1::SnapshotInfo&, const std::string&) {
    return absl::UnavailableError("fetched");
  };
  return OpenArchive(run, std::nullopt, 1, folder->get(), fetch, &log).status();
}

TEST(OpenArchiveTest, BoundsSnapshotByModelThatWorkersTrainWhole) {
  v1::GetRunResponse run;
  run.set_model_config_json(
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 64,
          "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "rms_norm_eps": 1e-5,
          "num_attention_heads": 2, "max_position_embeddings": 16})");
  const uint64_t of_adapter = 400;
  EXPECT_THAT(OpenWithSnapshotOf(of_adapter, run).message(),
              HasSubstr("a snapshot of 400 bytes is not one of the run's model"));
  run.mutable_config()->set_workers(v1::WORKERS_PYTHON);
  EXPECT_EQ(OpenWithSnapshotOf(of_adapter, run), absl::UnavailableError("fetched"));
}

TEST(OpenArchiveTest, FollowsModelOfMoreThan65536Blocks) {
  v1::GetRunResponse run;
  run.set_model_config_json(
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000,
          "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
          "rms_norm_eps": 1e-5, "num_attention_heads": 8, "max_position_embeddings": 2048})");
  EXPECT_EQ(OpenWithSnapshotOf(uint64_t{4819542456}, run), absl::UnavailableError("fetched"));
}

TEST_F(ArchiverTest, RefusesAFolderOfAnotherRun) {
  ASSERT_TRUE(Run(Options()).ok());
  StopRun();
  std::filesystem::remove_all(folder_.File("data"));
  clock_.Advance(absl::Seconds(2));
  StartRun();
  EXPECT_EQ(ReasonOf(Run(Options())), "other_run");
}

// The log's bytes come from the disk once the aggregator was started again.
TEST_F(ArchiverTest, WaitsForADamagedRecordAndGoesOnWhenItIsRestored) {
  AdvanceTo(4);
  StartRun();
  const std::string good = *ReadFile(RecordPath(1));
  DamageRecord(1);
  ArchiverMetrics metrics;
  auto archiver = Archiver::Create(Options(), &metrics, &archiver_log_, Clock::Real());
  ASSERT_TRUE(archiver.ok()) << archiver.status();
  absl::Status status;
  std::thread thread([&] { status = (*archiver)->Run(); });
  AwaitLog("its record is damaged");
  ASSERT_TRUE(WriteFileAtomically(RecordPath(1), good).ok());
  thread.join();
  archiver->reset();  // gives its folder back
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(metrics.replayed_rounds->value(), 4);
  ExpectSame();
}

TEST_F(ArchiverTest, BeginsWithSnapshotAfterDamage) {
  AdvanceTo(2);
  ASSERT_TRUE(Run(Options()).ok());  // holds round 2
  AdvanceTo(6);
  ArchiverOptions other = Options();
  other.data_dir = folder_.File("other archive");
  other.snapshot_interval_rounds = 100;
  ASSERT_TRUE(Run(other).ok());
  ASSERT_EQ(StoredRounds().front(), 5);  // the record of round 5 confirms it
  StopRun();
  Start(Config());
  DamageRecord(4);
  const absl::Status status = Run(Options());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Log(), HasSubstr("starts again from the newest snapshot"));
  EXPECT_THAT(Log(),
              HasSubstr("round 4: its record is damaged: begin from the snapshot before round 5"));
  ExpectSame();
}

// It saw a later epoch: this aggregator was replaced, and its answers are ignored.
TEST_F(ArchiverTest, WaitsWhileAnOlderAggregatorAnswers) {
  ASSERT_TRUE(Run(Options()).ok());
  {
    auto folder = ArchiveFolder::Open(folder_.File("archive"));
    ArchiveState state = **(*folder)->Load();
    state.epoch += 1'000'000;
    ASSERT_TRUE((*folder)->SaveState(state, {}).ok());
  }
  AdvanceTo(2);
  ArchiverMetrics metrics;
  absl::Notification waits;
  distro::Log log(LogLevel::kInfo, Clock::Real(), [&](absl::string_view line) {
    if (absl::StrContains(line, "waiting for the aggregator") && !waits.HasBeenNotified())
      waits.Notify();
  });
  auto archiver = Archiver::Create(Options(), &metrics, &log, Clock::Real());
  ASSERT_TRUE(archiver.ok()) << archiver.status();
  absl::Status status;
  std::thread thread([&] { status = (*archiver)->Run(); });
  waits.WaitForNotification();
  (*archiver)->Stop();
  thread.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(metrics.replayed_rounds->value(), 0);
}

// One that a lying aggregator told: no true one would ever be believed again.
TEST_F(ArchiverTest, ForgetsAnEpochOfTheFarFuture) {
  ASSERT_TRUE(Run(Options()).ok());
  {
    auto folder = ArchiveFolder::Open(folder_.File("archive"));
    ArchiveState state = **(*folder)->Load();
    state.epoch = UINT64_MAX;
    ASSERT_TRUE((*folder)->SaveState(state, {}).ok());
  }
  AdvanceTo(2);
  EXPECT_TRUE(Run(Options()).ok());
  ExpectSame();
  EXPECT_LT(Held().epoch, UINT64_MAX);
}

// Epochs of two runs do not compare: the other run is named, whichever of them is higher.
TEST_F(ArchiverTest, RefusesOtherRunOfLaterEpoch) {
  ASSERT_TRUE(Run(Options()).ok());
  {
    auto folder = ArchiveFolder::Open(folder_.File("archive"));
    ArchiveState state = **(*folder)->Load();
    state.run_id = "other-00000001";
    state.epoch += 1'000'000;
    ASSERT_TRUE((*folder)->SaveState(state, {}).ok());
  }
  const absl::Status status = Run(Options());
  EXPECT_EQ(ReasonOf(status), "other_run") << status;
}

// The log confirms the snapshot that it could not store yet.
TEST_F(ArchiverTest, ContinuesUploadAfterRestart) {
  AdvanceTo(3);
  disk_.Fail({.path_part = "incoming"});
  ArchiverMetrics metrics;
  absl::Notification refused;
  distro::Log log(LogLevel::kInfo, Clock::Real(), [&](absl::string_view line) {
    if (absl::StrContains(line, "snapshot upload interrupted") && !refused.HasBeenNotified())
      refused.Notify();
  });
  auto archiver = Archiver::Create(Options(), &metrics, &log, Clock::Real());
  ASSERT_TRUE(archiver.ok()) << archiver.status();
  absl::Status status;
  std::thread thread([&] { status = (*archiver)->Run(); });
  refused.WaitForNotification();
  StopRun();
  disk_.Heal();
  StartRun();
  thread.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(StoredRounds(), ::testing::ElementsAre(2, 0));
}

TEST_F(ArchiverTest, SavesCopyOnStop) {
  AdvanceTo(2);
  ArchiverOptions options = Options();
  options.once = false;
  ArchiverMetrics metrics;
  absl::Notification follows;
  distro::Log log(LogLevel::kDebug, Clock::Real(), [&](absl::string_view line) {
    if (absl::StrContains(line, "round replayed round=1")) follows.Notify();
  });
  auto archiver = Archiver::Create(options, &metrics, &log, Clock::Real());
  ASSERT_TRUE(archiver.ok()) << archiver.status();
  absl::Status status;
  std::thread thread([&] { status = (*archiver)->Run(); });
  follows.WaitForNotification();
  (*archiver)->Stop();
  thread.join();
  EXPECT_TRUE(status.ok()) << status;
  archiver->reset();
  ExpectSame();
}

}  // namespace
}  // namespace distro::tools
