#include "server/log/restored_run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/layout/layout.h"
#include "common/run/record/committed_round.h"
#include "common/run/run_config.h"
#include "server/log/read_run.h"
#include "server/log/record_format.h"
#include "server/log/record_writer.h"
#include "server/log/run_identity.h"
#include "server/log/snapshot_check.h"

namespace distro::server {
namespace {

namespace fs = std::filesystem;

// The chain of the headers, as the log will store it.
struct Chain {
  uint64_t first_round = 0;
  uint64_t predecessor_hash = 0;  // of the record before the first
};

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("archive: ", what));
}

absl::StatusOr<Chain> CheckHeaders(const RestoredRun& restored, const Layout& layout) {
  const auto& headers = restored.archive.headers();
  const auto count = static_cast<uint64_t>(headers.size());
  const uint64_t end = restored.snapshot.round();
  if (count < kLeastRestoredHeaders || count > end) {
    return Wrong(absl::StrCat("has the headers of ", count, " rounds before round ", end,
                              ", and at least ", kLeastRestoredHeaders,
                              " are needed: an archiver has them once it has followed so many "
                              "rounds and saved its copy"));
  }
  Chain chain{.first_round = end - count};
  uint64_t hash = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string& bytes = headers[static_cast<int>(i)];
    absl::StatusOr<v1::RoundHeader> header = ParseRoundHeader(bytes, layout);
    if (!header.ok()) return Annotate(header.status(), "archive");
    if (i == 0) chain.predecessor_hash = hash = header->predecessor_hash();
    if (header->round() != chain.first_round + i || header->predecessor_hash() != hash)
      return Wrong(absl::StrCat("the header of round ", chain.first_round + i,
                                " does not continue the one before"));
    hash = Xxh3(bytes);
  }
  if (hash == restored.snapshot.log_hash()) return chain;
  return Wrong(absl::StrCat("its last header has hash ", ToHex(hash), ", the copy follows ",
                            ToHex(restored.snapshot.log_hash())));
}

absl::Status CheckEmpty(const std::string& data_dir) {
  std::error_code error;
  if (!fs::exists(data_dir, error) || fs::is_empty(data_dir, error)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(data_dir, ": is not empty: give a new folder"));
}

// In pieces, durably.
absl::Status CopyFile(const std::string& from, const std::string& to, Disk* disk) {
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(from));
  DISTRO_ASSIGN_OR_RETURN(const int fd, disk->Create(to));
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  constexpr uint64_t kPiece = 8 << 20;
  for (uint64_t at = 0; at < file.bytes().size(); at += kPiece)
    DISTRO_RETURN_IF_ERROR(disk->Write(fd, to, at, file.bytes().substr(at, kPiece)));
  return disk->Fsync(fd, to);
}

absl::Status WriteRecord(const std::string& dir, const std::string& name, RecordKind kind,
                         uint64_t round, absl::string_view header, Disk* disk) {
  const std::string path = absl::StrCat(dir, "/", name);
  DISTRO_ASSIGN_OR_RETURN(
      RecordWriter file,
      RecordWriter::Create({disk, dir, path + ".tmp", path}, kind, RoundId(round), /*segments=*/0));
  return file.Publish(header, [](absl::Duration) {});
}

absl::Status WriteLog(const std::string& dir, const RestoredRun& restored, const Layout& layout,
                      const Chain& chain, Disk* disk) {
  v1::StartHeader start;
  start.set_run_id(restored.archive.run().run_id());
  start.set_manifest_hash(DigestBytes(layout.manifest().hash()));
  start.set_state_hash(restored.snapshot.state_hash());
  start.set_data_fingerprint(restored.archive.data_fingerprint());
  start.set_first_round(chain.first_round);
  start.set_predecessor_hash(chain.predecessor_hash);
  DISTRO_RETURN_IF_ERROR(WriteRecord(dir, std::string(kStartRecordName), RecordKind::kStart, 0,
                                     start.SerializeAsString(), disk));
  uint64_t round = chain.first_round;
  for (const std::string& header : restored.archive.headers()) {
    DISTRO_RETURN_IF_ERROR(
        WriteRecord(dir, RecordName(RoundId(round)), RecordKind::kPruned, round, header, disk));
    ++round;
  }
  return absl::OkStatus();
}

absl::Status WriteCompanionFiles(const std::string& data_dir, const Companions& companions,
                                 Disk* disk) {
  if (companions.empty()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(disk->CreateFolder(CompanionsDir(data_dir)));
  for (const Companion& companion : companions) {
    DISTRO_RETURN_IF_ERROR(WriteAtomically(
        disk, absl::StrCat(CompanionsDir(data_dir), "/", companion.name), companion.bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteRestoredRun(const std::string& data_dir, const RestoredRun& restored,
                              Disk* disk) {
  DISTRO_RETURN_IF_ERROR(CheckEmpty(data_dir));
  if (restored.archive.data_fingerprint().empty()) {
    return Wrong(
        "does not say which data the run is of: its aggregator was of an older version, or the run "
        "had not started");
  }
  v1::StoredRun run = restored.archive.run();
  *run.mutable_initial_snapshot() = restored.snapshot;
  const absl::StatusOr<v1::StoredRun> parsed = ParseRunFile(EncodeRunFile(run));
  if (absl::IsFailedPrecondition(parsed.status())) return Annotate(parsed.status(), "archive");
  if (!parsed.ok()) return Wrong(parsed.status().message());
  DISTRO_ASSIGN_OR_RETURN(const auto layout,
                          LayoutOfSnapshot(restored.snapshot_path, run.config()));
  DISTRO_ASSIGN_OR_RETURN(const Chain chain, CheckHeaders(restored, *layout));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t state_hash,
                          CheckedStateHash(restored.snapshot_path, *layout));
  if (state_hash != restored.snapshot.state_hash()) {
    return Wrong(absl::StrCat("its parameters have state hash ", ToHex(state_hash), ", not ",
                              ToHex(restored.snapshot.state_hash())));
  }
  const std::string rounds = data_dir + "/rounds", snapshots = data_dir + "/snapshots";
  for (const std::string& folder : {data_dir, rounds, snapshots})
    DISTRO_RETURN_IF_ERROR(disk->CreateFolder(folder));
  DISTRO_RETURN_IF_ERROR(
      CopyFile(restored.snapshot_path, SnapshotPath(data_dir, restored.snapshot.round()), disk));
  DISTRO_RETURN_IF_ERROR(disk->FsyncFolder(snapshots));
  DISTRO_RETURN_IF_ERROR(WriteLog(rounds, restored, *layout, chain, disk));
  DISTRO_RETURN_IF_ERROR(WriteCompanionFiles(data_dir, restored.companions, disk));
  DISTRO_RETURN_IF_ERROR(WriteAtomically(
      disk, data_dir + "/epoch", absl::StrCat(std::max<uint64_t>(1, restored.epoch), "\n")));
  DISTRO_RETURN_IF_ERROR(
      WriteAtomically(disk, data_dir + "/run.json", RunConfigToJson(run.config())));
  DISTRO_RETURN_IF_ERROR(
      WriteAtomically(disk, data_dir + "/model_config.json", run.model_config_json()));
  return WriteAtomically(disk, RunFilePath(data_dir), EncodeRunFile(run));
}

}  // namespace distro::server
