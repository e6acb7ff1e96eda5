#include "server/round/run_host.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/model/checkpoint/companions.h"
#include "common/net/wire/proto_time.h"
#include "common/run/run_config.h"
#include "server/log/same_run.h"

namespace distro::server {
namespace {

constexpr size_t kMaxModelConfigBytes = 1 << 20;
constexpr int kVerifiedPayloads = 2;  // newest records whose payloads are read at the start

absl::StatusOr<Sha256Digest> ReadDigest(const std::string& bytes) {
  Sha256Digest digest;
  if (bytes.size() != digest.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot_sha256: ", bytes.size(), " bytes, not 32"));
  }
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

// Companions of a header that was checked.
uint64_t UploadBytes(const v1::CreateRunHeader& header) {
  return header.snapshot_bytes() + CompanionBytes(header.companions());
}

v1::CreateRunResponse RunIdResponse(const RunStore& store) {
  v1::CreateRunResponse response;
  response.set_run_id(store.run()->run_id);
  return response;
}

}  // namespace

RunHost::RunHost(std::unique_ptr<RunStore> store, const Clock* clock, Log* log,
                 RunObserver* observer, const RoundManagerOptions& options,
                 std::function<void(absl::Status)> on_fatal)
    : clock_(clock),
      log_(log),
      observer_(observer),
      options_(options),
      on_fatal_(std::move(on_fatal)),
      epoch_(store->epoch()),
      store_(std::move(store)) {}

RunHost::~RunHost() {
  stopping_ = true;
  Stop();
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void RunHost::Drain() {
  draining_ = true;
  if (RoundManager* running = manager()) running->Drain();
}

void RunHost::Stop() {
  draining_ = true;
  if (RoundManager* running = manager()) running->Stop();
}

void RunHost::AwaitDrained(absl::Duration timeout) const {
  if (const RoundManager* running = manager()) running->AwaitDrained(timeout);
}

absl::Status RunHost::CheckNotDraining() const {
  if (!draining_) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kUnavailable, "draining",
                         "the aggregator is about to stop: try again later");
}

// The last rule of docs/protocol.md, "Times". Only a warning, since the run's deadline cannot be
// changed.
void RunHost::WarnOfGrace(const v1::RunConfig& config) {
  if (!config.has_round_deadline()) return;
  const absl::Duration deadline = FromProto(config.round_deadline());
  if (deadline < options_.drain_grace) return;
  log_->Warning("a drain may end before the open round: raise --drain_grace",
                {{"drain_grace", absl::FormatDuration(options_.drain_grace)},
                 {"round_deadline", absl::FormatDuration(deadline)}});
}

absl::Status RunHost::Continue() {
  absl::MutexLock lock(&mu_);
  return store_->has_run() ? ContinueLocked() : absl::OkStatus();
}

absl::Status RunHost::ContinueLocked() {
  if (manager_ != nullptr) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(round_log_,
                          RoundLog::Open(store_->rounds_dir(), store_->run()->layout.get(),
                                         kVerifiedPayloads, store_->disk(), log_));
  if (fsync_observer_) round_log_->SetFsyncObserver(fsync_observer_);
  LeaveOutUnconfirmed(*round_log_, store_->snapshots(), log_);
  const RunFiles files{.rounds = round_log_.get(),
                       .admission = store_->admission(),
                       .snapshots = store_->snapshots()};
  DISTRO_ASSIGN_OR_RETURN(manager_, RoundManager::Create({.run = store_->run(),
                                                          .epoch = epoch_,
                                                          .files = files,
                                                          .clock = clock_,
                                                          .log = log_,
                                                          .observer = observer_,
                                                          .options = options_}));
  WarnOfGrace(store_->run()->config);
  log_->Info("run ready", {{"run", store_->run()->run_id},
                           {"epoch", epoch_.value()},
                           {"next_round", round_log_->next_round().value()}});
  thread_ = std::thread([this, manager = manager_.get()] { RunRounds(manager); });
  snapshots_ = std::make_unique<SnapshotTransfers>(store_->snapshots(), round_log_.get(),
                                                   manager_.get(), log_);
  log_view_.store(round_log_.get(), std::memory_order_release);
  snapshots_view_.store(snapshots_.get(), std::memory_order_release);
  manager_view_.store(manager_.get(), std::memory_order_release);
  return absl::OkStatus();
}

void RunHost::RunRounds(RoundManager* manager) {
  RoundThread& rounds = manager->round_thread();
  while (!stopping_) {
    const absl::StatusOr<absl::Duration> until = rounds.Step();
    if (!until.ok()) {
      log_->Error("the rounds cannot go on", {{"error", until.status()}});
      manager->Stop();
      on_fatal_(until.status());
      return;
    }
    if (!stopping_) rounds.WaitForWork(*until);
  }
}

absl::Status RunHost::CreateFromFolder(const v1::RunConfig& config,
                                       const std::string& checkpoint_dir) {
  absl::MutexLock lock(&mu_);
  DISTRO_RETURN_IF_ERROR(RefusalOf(store_->CreateRunFromFolder(config, checkpoint_dir)));
  return ContinueLocked();
}

absl::StatusOr<v1::CreateRunResponse> RunHost::BeginCreate(const v1::CreateRunHeader& header) {
  DISTRO_RETURN_IF_ERROR(CheckNotDraining());
  DISTRO_ASSIGN_OR_RETURN(const Sha256Digest sha256, ReadDigest(header.snapshot_sha256()));
  DISTRO_RETURN_IF_ERROR(CompleteRunConfig(header.config()).status());
  if (header.model_config_json().size() > kMaxModelConfigBytes) {
    return absl::InvalidArgumentError("model_config_json: larger than 1 MiB");
  }
  if (header.snapshot_bytes() == 0 || header.snapshot_bytes() > UINT64_MAX - kMaxCompanionBytes) {
    return absl::InvalidArgumentError("snapshot_bytes: must not be 0, nor near 2^64");
  }
  DISTRO_RETURN_IF_ERROR(CheckCompanionList(header.companions()));
  absl::MutexLock lock(&mu_);
  if (store_->has_run()) {
    DISTRO_RETURN_IF_ERROR(RefusalOf(store_->CheckSameRun(
        header.config(), header.model_config_json(), sha256, header.companions())));
    return RunIdResponse(*store_);
  }
  DISTRO_ASSIGN_OR_RETURN(uint64_t offset, store_->IncomingBytes(sha256));
  if (offset == header.snapshot_bytes()) {
    DISTRO_ASSIGN_OR_RETURN(const uint64_t behind,
                            store_->IncomingCompanionBytes(header.companions()));
    offset += behind;
  }
  if (offset == UploadBytes(header)) {  // all bytes came before; only the run was not made
    DISTRO_RETURN_IF_ERROR(CreateUploaded(header, sha256));
    return RunIdResponse(*store_);
  }
  v1::CreateRunResponse response;
  response.set_offset(offset);
  return response;
}

absl::Status RunHost::CreateUploaded(const v1::CreateRunHeader& header,
                                     const Sha256Digest& sha256) {
  DISTRO_ASSIGN_OR_RETURN(const Companions companions,
                          store_->IncomingCompanions(header.companions()));
  DISTRO_RETURN_IF_ERROR(RefusalOf(store_->CreateRun(header.config(), header.model_config_json(),
                                                     header.snapshot_bytes(), sha256, companions)));
  return ContinueLocked();
}

absl::StatusOr<std::optional<v1::CreateRunResponse>> RunHost::AddFrame(
    const v1::CreateRunHeader& header, const v1::SnapshotFrame& frame) {
  DISTRO_ASSIGN_OR_RETURN(const Sha256Digest sha256, ReadDigest(header.snapshot_sha256()));
  const uint64_t snapshot = header.snapshot_bytes();
  const uint64_t total = UploadBytes(header);
  const uint64_t end = frame.offset() < snapshot ? snapshot : total;  // no frame is of both
  if (frame.offset() > end || frame.data().size() > end - frame.offset() || frame.data().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame: ", frame.data().size(), " bytes at offset ", frame.offset(),
                     ": empty, or beyond the ", frame.offset() < snapshot ? "snapshot" : "upload",
                     "'s end at ", end));
  }
  DISTRO_RETURN_IF_ERROR(CheckNotDraining());
  absl::MutexLock lock(&mu_);
  if (store_->has_run()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", store_->run()->run_id,
                     " was created in the meantime: distroctl run show prints it"));
  }
  if (frame.offset() < snapshot) {
    DISTRO_RETURN_IF_ERROR(store_->AppendIncoming(sha256, snapshot, frame.offset(), frame.data()));
  } else {
    DISTRO_ASSIGN_OR_RETURN(const uint64_t stored, store_->IncomingBytes(sha256));
    if (stored < snapshot) {
      return absl::InvalidArgumentError(absl::StrCat("frame: belongs to the companions, but only ",
                                                     stored,
                                                     " bytes of the snapshot have arrived"));
    }
    DISTRO_RETURN_IF_ERROR(store_->AppendIncomingCompanions(
        header.companions(), frame.offset() - snapshot, frame.data()));
  }
  if (frame.offset() + frame.data().size() < total) return std::nullopt;
  DISTRO_RETURN_IF_ERROR(CreateUploaded(header, sha256));
  return RunIdResponse(*store_);
}

uint64_t RunHost::log_bytes() const {
  const RoundLog* log = log_view_.load(std::memory_order_acquire);
  return log == nullptr ? 0 : log->bytes();
}

uint64_t RunHost::log_files() const {
  const RoundLog* log = log_view_.load(std::memory_order_acquire);
  return log == nullptr ? 0 : log->files();
}

}  // namespace distro::server
