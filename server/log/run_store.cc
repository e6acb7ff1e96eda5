#include "server/log/run_store.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/methods.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "common/run/record/header_bound.h"
#include "common/run/round/model_check.h"
#include "common/run/run_config.h"
#include "distro/v1/store.pb.h"
#include "server/log/epoch_file.h"
#include "server/log/incoming_file.h"
#include "server/log/read_run.h"
#include "server/log/run_identity.h"
#include "server/log/same_run.h"
#include "server/log/snapshot_check.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxModelConfigBytes = 1 << 20;

absl::Status CheckModelConfig(absl::string_view json) {
  if (json.size() > kMaxModelConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.json: is larger than ", kMaxModelConfigBytes, " bytes"));
  }
  const auto parsed = ParseJson(json);
  if (!parsed.ok()) return Annotate(parsed.status(), "config.json");
  if (parsed->is_object()) return absl::OkStatus();
  return absl::InvalidArgumentError("config.json: is not a JSON object");
}

absl::Status RemoveTemporaryFiles(const std::string& dir, Disk* disk, Log* log) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".tmp")) continue;
    const std::string path = absl::StrCat(dir, "/", name);
    DISTRO_RETURN_IF_ERROR(disk->Unlink(path));
    log->Info("temporary file removed", {{"path", path}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStore>> RunStore::Open(const std::string& data_dir, Disk* disk,
                                                         const Clock* clock, Log* log,
                                                         const StartCheck& check) {
  DISTRO_RETURN_IF_ERROR(disk->CreateFolder(data_dir));
  absl::StatusOr<FolderLock> lock = FolderLock::Take(data_dir);
  if (lock.status().code() == absl::StatusCode::kFailedPrecondition) {
    return absl::FailedPreconditionError(absl::StrCat(
        data_dir,
        ": another aggregator holds this folder: stop it, or give this one its own --data_dir"));
  }
  DISTRO_RETURN_IF_ERROR(lock.status());
  WarnIfNamesMayBeLost(data_dir, log);
  std::unique_ptr<RunStore> store(new RunStore(data_dir, *std::move(lock), disk, clock, log));
  DISTRO_RETURN_IF_ERROR(disk->Restore().status());
  DISTRO_RETURN_IF_ERROR(store->Prepare());
  DISTRO_RETURN_IF_ERROR(store->LoadRun());
  if (check) DISTRO_RETURN_IF_ERROR(check(store.get()));
  DISTRO_ASSIGN_OR_RETURN(store->epoch_, RaiseEpoch(data_dir, store->has_run(),
                                                    std::random_device()(), *clock, disk, log));
  // Whoever served the run before may have written until it saw the new epoch.
  DISTRO_ASSIGN_OR_RETURN(const bool changed, disk->Restore());
  if (changed) DISTRO_RETURN_IF_ERROR(store->LoadRun());
  log->Info("data folder opened", {{"path", data_dir},
                                   {"epoch", store->epoch().value()},
                                   {"run", store->has_run() ? store->run()->run_id : "none"}});
  return store;
}

absl::Status RunStore::Prepare() {
  for (const char* folder : {"/incoming", "/snapshots", "/rounds"}) {
    DISTRO_RETURN_IF_ERROR(disk_->CreateFolder(data_dir_ + folder));
  }
  for (const char* folder : {"", "/incoming", "/snapshots"}) {
    DISTRO_RETURN_IF_ERROR(RemoveTemporaryFiles(data_dir_ + folder, disk_, log_));
  }
  return disk_->FsyncFolder(data_dir_);
}

absl::Status RunStore::LoadRun() {
  const absl::Duration begin = clock_->MonotonicNow();
  absl::StatusOr<std::shared_ptr<const RunIdentity>> run =
      ReadRun(data_dir_, SnapshotCheck::kSha256);
  if (absl::IsNotFound(run.status())) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(run.status());
  log_->Info("initial snapshot verified",
             {{"bytes", (*run)->initial_snapshot.size_bytes()},
              {"seconds", absl::ToDoubleSeconds(clock_->MonotonicNow() - begin)}});
  return UseRun(*std::move(run));
}

absl::Status RunStore::UseRun(std::shared_ptr<const RunIdentity> run) {
  DISTRO_ASSIGN_OR_RETURN(snapshots_, SnapshotStore::Open(data_dir_, run, disk_, log_));
  DISTRO_ASSIGN_OR_RETURN(admission_, AdmissionStore::Open(data_dir_ + "/admission.pb", disk_));
  identity_ = std::move(run);
  return absl::OkStatus();
}

std::string RunStore::IncomingPath(const Sha256Digest& sha256) const {
  return absl::StrCat(data_dir_, "/incoming/", ToHex(sha256), ".part");
}

// The temporary file is named after the final one.
std::string RunStore::IncomingPath(const CompanionList& list) const {
  std::string names;
  for (const v1::CompanionFile& file : list)
    absl::StrAppend(&names, file.name(), "\n", file.sha256());
  return absl::StrCat(data_dir_, "/incoming/companions-", ToHex(Sha256(names)), ".part");
}

absl::StatusOr<uint64_t> RunStore::IncomingBytes(const Sha256Digest& sha256) const {
  return FileSizeOrZero(IncomingPath(sha256));
}

absl::Status RunStore::AppendIncoming(const Sha256Digest& sha256, uint64_t snapshot_bytes,
                                      uint64_t offset, absl::string_view data) {
  if (has_run()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data folder holds run ", run()->run_id, " already"));
  }
  return AppendToFile(disk_, IncomingPath(sha256), snapshot_bytes, offset, data);
}

absl::StatusOr<uint64_t> RunStore::IncomingCompanionBytes(const CompanionList& list) const {
  return FileSizeOrZero(IncomingPath(list));
}

absl::Status RunStore::AppendIncomingCompanions(const CompanionList& list, uint64_t offset,
                                                absl::string_view data) {
  return AppendToFile(disk_, IncomingPath(list), CompanionBytes(list), offset, data);
}

absl::StatusOr<Companions> RunStore::IncomingCompanions(const CompanionList& list) {
  if (list.empty()) return Companions();
  const std::string path = IncomingPath(list);
  DISTRO_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, CompanionBytes(list)));
  absl::StatusOr<Companions> companions = SplitCompanions(list, bytes);
  if (!companions.ok()) DISTRO_RETURN_IF_ERROR(disk_->Unlink(path));
  return companions;
}

absl::Status RunStore::CheckSameRun(const v1::RunConfig& config,
                                    absl::string_view model_config_json, const Sha256Digest& sha256,
                                    const CompanionList& companions) const {
  return CompareRuns(*identity_, {config, model_config_json, sha256, companions});
}

absl::Status RunStore::CreateRun(const v1::RunConfig& config, absl::string_view model_config_json,
                                 uint64_t snapshot_bytes, const Sha256Digest& sha256,
                                 const Companions& companions) {
  if (has_run())
    return CheckSameRun(config, model_config_json, sha256, DescribeCompanions(companions));
  DISTRO_ASSIGN_OR_RETURN(v1::RunConfig complete, CompleteRunConfig(config));
  DISTRO_RETURN_IF_ERROR(CheckModelConfig(model_config_json));
  DISTRO_RETURN_IF_ERROR(CheckPinnedTokenizer(complete.tokenizer_sha256(), companions));
  const std::string incoming = IncomingPath(sha256);
  DISTRO_RETURN_IF_ERROR(
      AsUpload(CheckIncoming(disk_, incoming, snapshot_bytes, sha256), incoming));
  auto layout = LayoutOfSnapshot(incoming, complete);
  if (!layout.ok()) return AsUpload(layout.status(), incoming);
  DISTRO_RETURN_IF_ERROR(CheckModelOfRun(complete, **layout, model_config_json));
  DISTRO_RETURN_IF_ERROR(CheckHeaderBound(complete, HeaderShapeOf(complete, **layout)));
  DISTRO_ASSIGN_OR_RETURN(auto method,
                          MethodOf(complete).MakeRounds(complete, *layout, model_config_json));
  const absl::StatusOr<uint64_t> state_hash = CheckedStateHash(incoming, **layout);
  if (!state_hash.ok()) return AsUpload(state_hash.status(), incoming);
  v1::SnapshotInfo snapshot;
  snapshot.set_size_bytes(snapshot_bytes);
  snapshot.set_sha256(DigestBytes(sha256));
  snapshot.set_state_hash(*state_hash);
  const std::string run_id = absl::StrFormat("%s-%08x", complete.name(), run_number_);
  return Publish({run_id,
                  std::move(complete),
                  std::string(model_config_json),
                  std::move(snapshot),
                  SnapshotPath(data_dir_, 0),
                  *std::move(layout),
                  std::move(method),
                  DescribeCompanions(companions),
                  CompanionsDir(data_dir_),
                  {}},
                 incoming, companions);
}

absl::Status RunStore::WriteCompanionFiles(const Companions& companions) {
  if (companions.empty()) return absl::OkStatus();
  const std::string folder = CompanionsDir(data_dir_);
  DISTRO_RETURN_IF_ERROR(disk_->CreateFolder(folder));
  for (const Companion& companion : companions) {
    DISTRO_RETURN_IF_ERROR(
        WriteAtomically(disk_, absl::StrCat(folder, "/", companion.name), companion.bytes));
  }
  return disk_->FsyncFolder(data_dir_);
}

absl::Status RunStore::Publish(RunIdentity identity, const std::string& incoming,
                               const Companions& companions) {
  const std::string& snapshot = identity.initial_snapshot_path;
  DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, snapshot));  // of a creation that did not finish
  DISTRO_RETURN_IF_ERROR(disk_->Link(incoming, snapshot));
  DISTRO_RETURN_IF_ERROR(disk_->FsyncFolder(data_dir_ + "/snapshots"));
  DISTRO_RETURN_IF_ERROR(
      WriteAtomically(disk_, data_dir_ + "/run.json", RunConfigToJson(identity.config)));
  DISTRO_RETURN_IF_ERROR(
      WriteAtomically(disk_, data_dir_ + "/model_config.json", identity.model_config_json));
  DISTRO_RETURN_IF_ERROR(WriteCompanionFiles(companions));
  v1::StoredRun stored;
  stored.set_run_id(identity.run_id);
  *stored.mutable_config() = identity.config;
  stored.set_model_config_json(identity.model_config_json);
  *stored.mutable_initial_snapshot() = identity.initial_snapshot;
  *stored.mutable_companions() = identity.companions;
  DISTRO_RETURN_IF_ERROR(WriteAtomically(disk_, RunFilePath(data_dir_), EncodeRunFile(stored)));
  disk_->Unlink(incoming).IgnoreError();  // a second name of the snapshot
  if (!companions.empty()) disk_->Unlink(IncomingPath(identity.companions)).IgnoreError();
  DISTRO_RETURN_IF_ERROR(UseRun(std::make_shared<const RunIdentity>(std::move(identity))));
  log_->Info("run created", {{"run", identity_->run_id},
                             {"parameters", identity_->layout->elements()},
                             {"segments", identity_->layout->segments()},
                             {"state_hash", ToHex(identity_->initial_snapshot.state_hash())}});
  return absl::OkStatus();
}

Companions RunStore::AsStored(Companions companions) const {
  for (Companion& companion : companions) {
    const auto stored =
        ReadFile(absl::StrCat(CompanionsDir(data_dir_), "/", companion.name), kMaxCompanionBytes);
    if (stored.ok() && SameCompanion(companion.name, *stored, companion.bytes))
      companion.bytes = *stored;
  }
  return companions;
}

absl::Status RunStore::CreateRunFromFolder(const v1::RunConfig& config,
                                           const std::string& checkpoint_dir) {
  const std::string prepared = data_dir_ + "/incoming/prepared.tmp";
  const auto remover = absl::MakeCleanup([&] { disk_->Unlink(prepared).IgnoreError(); });
  DISTRO_ASSIGN_OR_RETURN(const InitialSnapshot snapshot,
                          PrepareInitialSnapshot(checkpoint_dir, prepared));
  if (has_run()) {
    return CheckSameRun(config, snapshot.model_config_json, snapshot.sha256,
                        DescribeCompanions(AsStored(snapshot.companions)));
  }
  DISTRO_RETURN_IF_ERROR(disk_->Rename(prepared, IncomingPath(snapshot.sha256)));
  const absl::Status created = CreateRun(config, snapshot.model_config_json, snapshot.bytes,
                                         snapshot.sha256, snapshot.companions);
  return absl::IsInvalidArgument(created) ? Annotate(created, checkpoint_dir) : created;
}

}  // namespace distro::server
