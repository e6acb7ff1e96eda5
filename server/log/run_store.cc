#include "server/log/run_store.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/checkpoint/snapshot.h"
#include "common/replica/initial_snapshot.h"
#include "common/replica/replica.h"
#include "common/run/run_config.h"
#include "google/protobuf/util/message_differencer.h"
#include "kernels/backend.h"
#include "server/log/incoming_file.h"
#include "server/log/run_file.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxModelConfigBytes = 1 << 20;
constexpr uint64_t kMaxRunFileBytes = 4 << 20;

std::string Bytes(const Sha256Digest& digest) { return {digest.begin(), digest.end()}; }

std::string NewRunId(const std::string& name) {
  return absl::StrFormat("%s-%08x", name, std::random_device()());
}

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

absl::StatusOr<std::shared_ptr<const Layout>> LayoutOf(const std::string& snapshot,
                                                       const v1::RunConfig& config) {
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, SnapshotManifest(snapshot));
  DISTRO_ASSIGN_OR_RETURN(Layout layout, Layout::Create(std::move(manifest),
                                                        static_cast<int>(config.segment_blocks())));
  return std::make_shared<const Layout>(std::move(layout));
}

absl::Status CheckFinite(const Layout& layout, const TensorBuffer& parameters) {
  for (int t = 0; t < parameters.tensors(); ++t) {
    for (const float p : parameters.tensor(t)) {
      if (std::isfinite(p)) continue;
      return absl::InvalidArgumentError(absl::StrCat("tensor ", layout.manifest().tensors()[t].name,
                                                     ": holds a value that is not finite"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CheckedStateHash(const std::string& snapshot, const Layout& layout) {
  TensorBuffer parameters(layout);
  DISTRO_RETURN_IF_ERROR(ReadSnapshot(snapshot, layout, &parameters));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckFinite(layout, parameters), snapshot));
  return StateHash(layout, parameters, MakeCpuBackend().get());
}

absl::Status Damage(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      path, ": ", what,
      ": restore the file from a copy; without one a new run begins in an empty folder, for "
      "example from a checkpoint that a worker wrote"));
}

bool HoldsRecords(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (absl::EndsWith(entry.path().string(), ".record")) return true;
  }
  return false;
}

std::string SnapshotOf(const std::string& data_dir) {
  return data_dir + "/snapshots/0.safetensors";
}

std::string RunFileOf(const std::string& data_dir) { return data_dir + "/run.pb"; }

// NotFound: there is none, and nothing says that there was.
absl::StatusOr<v1::StoredRun> ReadRunFile(const std::string& data_dir) {
  const std::string path = RunFileOf(data_dir);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxRunFileBytes);
  if (absl::IsNotFound(bytes.status()) && HoldsRecords(data_dir + "/rounds")) {
    return Damage(path, "is missing, but the folder has rounds");
  }
  if (absl::IsInvalidArgument(bytes.status())) return Damage(path, "is too large");
  DISTRO_RETURN_IF_ERROR(bytes.status());
  absl::StatusOr<v1::StoredRun> stored = ParseRunFile(*bytes);
  if (!stored.ok()) return Damage(path, stored.status().message());
  return stored;
}

absl::Status CheckSnapshot(const std::string& path, const v1::StoredRun& stored) {
  const absl::StatusOr<Sha256Digest> sha256 = Sha256OfFile(path);
  if (!sha256.ok()) return Damage(path, sha256.status().message());
  if (Bytes(*sha256) == stored.initial_snapshot().sha256()) return absl::OkStatus();
  return Damage(path, "its SHA-256 is not that of the run's initial snapshot");
}

absl::Status RemoveTemporaryFiles(const std::string& dir, Log* log) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, ".tmp")) continue;
    if (unlink(path.c_str()) != 0) return ErrnoToStatus(errno, "remove", path);
    log->Info("temporary file removed", {{"path", path}});
  }
  if (error) return ErrnoToStatus(error.value(), "list folder", dir);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStore>> RunStore::Open(const std::string& data_dir, Log* log) {
  DISTRO_RETURN_IF_ERROR(CreateFolders(data_dir));
  DISTRO_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(data_dir));
  std::unique_ptr<RunStore> store(new RunStore(data_dir, std::move(lock), log));
  DISTRO_RETURN_IF_ERROR(store->Prepare());
  absl::StatusOr<std::shared_ptr<const RunIdentity>> run = ReadRun(data_dir);
  if (!run.ok() && !absl::IsNotFound(run.status())) return run.status();
  if (run.ok()) store->identity_ = *std::move(run);
  DISTRO_RETURN_IF_ERROR(store->RaiseEpoch());
  log->Info("data folder opened", {{"path", data_dir},
                                   {"epoch", store->epoch().value()},
                                   {"run", store->has_run() ? store->run()->run_id : "none"}});
  return store;
}

absl::StatusOr<std::shared_ptr<const RunIdentity>> RunStore::ReadRun(const std::string& data_dir) {
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredRun stored, ReadRunFile(data_dir));
  const std::string snapshot = SnapshotOf(data_dir);
  DISTRO_RETURN_IF_ERROR(CheckSnapshot(snapshot, stored));
  auto layout = LayoutOf(snapshot, stored.config());
  if (!layout.ok()) return Damage(snapshot, layout.status().message());
  return std::make_shared<const RunIdentity>(
      RunIdentity{stored.run_id(), stored.config(), stored.model_config_json(),
                  stored.initial_snapshot(), snapshot, *std::move(layout)});
}

absl::Status RunStore::Prepare() {
  for (const char* folder : {"/incoming", "/snapshots", "/rounds"}) {
    DISTRO_RETURN_IF_ERROR(CreateFolders(data_dir_ + folder));
  }
  for (const char* folder : {"", "/incoming", "/snapshots"}) {
    DISTRO_RETURN_IF_ERROR(RemoveTemporaryFiles(data_dir_ + folder, log_));
  }
  return SyncFolder(data_dir_);
}

absl::Status RunStore::RaiseEpoch() {
  const std::string path = data_dir_ + "/epoch";
  uint64_t last = 0;
  absl::StatusOr<std::string> text = ReadFile(path, 64);
  const bool fresh = absl::IsNotFound(text.status()) && !has_run();
  if (!fresh) {
    if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
    if (!text.ok() || !absl::SimpleAtoi(absl::StripSuffix(*text, "\n"), &last) || last == 0 ||
        *text != absl::StrCat(last, "\n")) {
      return absl::DataLossError(absl::StrCat(
          path,
          ": is missing or not a number: write into it a number that is not below the epoch "
          "of the last log lines, and a line feed"));
    }
  }
  epoch_ = EpochId(last + 1);
  return WriteFileAtomically(path, absl::StrCat(epoch_.value(), "\n"));
}

std::string RunStore::SnapshotPath() const { return SnapshotOf(data_dir_); }

std::string RunStore::IncomingPath(const Sha256Digest& sha256) const {
  return absl::StrCat(data_dir_, "/incoming/", ToHex(sha256), ".part");
}

absl::StatusOr<uint64_t> RunStore::IncomingBytes(const Sha256Digest& sha256) const {
  return FileSizeOrZero(IncomingPath(sha256));
}

absl::Status RunStore::AppendIncoming(const Sha256Digest& sha256, uint64_t offset,
                                      absl::string_view data) {
  if (has_run()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data folder holds run ", run()->run_id, " already"));
  }
  return AppendToFile(IncomingPath(sha256), offset, data);
}

absl::Status RunStore::CheckSameRun(const v1::RunConfig& config,
                                    absl::string_view model_config_json,
                                    const Sha256Digest& sha256) const {
  const auto differs = [&](absl::string_view what) {
    return absl::AlreadyExistsError(
        absl::StrCat("the data folder holds run ", identity_->run_id, ", which has another ", what,
                     ": give the new run an aggregator with an empty --data_dir"));
  };
  if (!google::protobuf::util::MessageDifferencer::Equals(config, identity_->config)) {
    return differs("configuration");
  }
  if (model_config_json != identity_->model_config_json) return differs("config.json");
  if (Bytes(sha256) != identity_->initial_snapshot.sha256()) return differs("initial model");
  return absl::OkStatus();
}

absl::Status RunStore::CreateRun(const v1::RunConfig& config, absl::string_view model_config_json,
                                 uint64_t snapshot_bytes, const Sha256Digest& sha256) {
  DISTRO_ASSIGN_OR_RETURN(v1::RunConfig complete, CompleteRunConfig(config));
  if (has_run()) return CheckSameRun(complete, model_config_json, sha256);
  DISTRO_RETURN_IF_ERROR(CheckModelConfig(model_config_json));
  const std::string incoming = IncomingPath(sha256);
  DISTRO_RETURN_IF_ERROR(CheckIncoming(incoming, snapshot_bytes, sha256));
  DISTRO_ASSIGN_OR_RETURN(auto layout, LayoutOf(incoming, complete));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t state_hash, CheckedStateHash(incoming, *layout));
  v1::SnapshotInfo snapshot;
  snapshot.set_size_bytes(snapshot_bytes);
  snapshot.set_sha256(Bytes(sha256));
  snapshot.set_state_hash(state_hash);
  const std::string run_id = NewRunId(complete.name());
  return Publish({run_id, std::move(complete), std::string(model_config_json), std::move(snapshot),
                  SnapshotPath(), std::move(layout)},
                 incoming);
}

absl::Status RunStore::Publish(RunIdentity identity, const std::string& incoming) {
  unlink(SnapshotPath().c_str());  // of a creation that did not finish
  if (link(incoming.c_str(), SnapshotPath().c_str()) != 0) {
    return ErrnoToStatus(errno, "link to", SnapshotPath());
  }
  DISTRO_RETURN_IF_ERROR(SyncFolder(data_dir_ + "/snapshots"));
  DISTRO_RETURN_IF_ERROR(
      WriteFileAtomically(data_dir_ + "/run.json", RunConfigToJson(identity.config)));
  DISTRO_RETURN_IF_ERROR(
      WriteFileAtomically(data_dir_ + "/model_config.json", identity.model_config_json));
  v1::StoredRun stored;
  stored.set_run_id(identity.run_id);
  *stored.mutable_config() = identity.config;
  stored.set_model_config_json(identity.model_config_json);
  *stored.mutable_initial_snapshot() = identity.initial_snapshot;
  DISTRO_RETURN_IF_ERROR(WriteFileAtomically(RunFileOf(data_dir_), EncodeRunFile(stored)));
  unlink(incoming.c_str());
  identity_ = std::make_shared<const RunIdentity>(std::move(identity));
  log_->Info("run created", {{"run", identity_->run_id},
                             {"parameters", identity_->layout->elements()},
                             {"segments", identity_->layout->segments()},
                             {"state_hash", ToHex(identity_->initial_snapshot.state_hash())}});
  return absl::OkStatus();
}

absl::Status RunStore::CreateRunFromFolder(const v1::RunConfig& config,
                                           const std::string& checkpoint_dir) {
  const std::string prepared = data_dir_ + "/incoming/prepared.tmp";
  const auto remover = absl::MakeCleanup([&] { unlink(prepared.c_str()); });
  DISTRO_ASSIGN_OR_RETURN(const InitialSnapshot snapshot,
                          PrepareInitialSnapshot(checkpoint_dir, prepared));
  const std::string incoming = IncomingPath(snapshot.sha256);
  if (!has_run() && rename(prepared.c_str(), incoming.c_str()) != 0) {
    return ErrnoToStatus(errno, "rename to", incoming);
  }
  return CreateRun(config, snapshot.model_config_json, snapshot.bytes, snapshot.sha256);
}

}  // namespace distro::server
