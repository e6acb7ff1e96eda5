#include "tools/distroctl/log_verify.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "server/log/admission_store.h"
#include "server/log/epoch_file.h"
#include "tools/distroctl/log_copy.h"
#include "tools/distroctl/stored_log.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kProgressInterval = absl::Seconds(2);
constexpr size_t kNamed = 10;

// The damage found so far.
struct Findings {
  uint64_t count = 0;
  std::vector<std::string> named;  // the first ones

  // Returns errors that are not damage.
  absl::Status Add(const absl::Status& status) {
    if (status.ok() || !absl::IsDataLoss(status)) return status;
    if (++count <= kNamed) named.emplace_back(status.message());
    return absl::OkStatus();
  }
};

// Returns the number of snapshots besides the initial one. An aggregator may delete one meanwhile:
// then the list no longer has it.
absl::StatusOr<size_t> VerifySnapshots(const std::string& data_dir, Findings* findings) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<v1::SnapshotInfo> listed,
                          server::ReadSnapshotList(data_dir));
  for (const v1::SnapshotInfo& info : listed) {
    const absl::Status status =
        server::CheckStoredSnapshot(server::SnapshotPath(data_dir, info.round()), info);
    DISTRO_ASSIGN_OR_RETURN(const std::vector<v1::SnapshotInfo> now,
                            server::ReadSnapshotList(data_dir));
    for (const v1::SnapshotInfo& still : now) {
      if (still.round() == info.round()) DISTRO_RETURN_IF_ERROR(findings->Add(status));
    }
  }
  return listed.size();
}

absl::Status VerifyPayloads(const server::RoundLog& log, Findings* findings,
                            const std::function<void(absl::string_view)>& progress) {
  absl::Duration said = Clock::Real()->MonotonicNow();
  const RoundId end = log.next_round();
  for (RoundId round = log.first_round(); round < end; round = round.Next()) {
    const auto record = log.OpenRecord(round);
    if (ReasonOf(record.status()) == "pruned") continue;  // deleted by the aggregator meanwhile
    const absl::Status status = record.ok() ? (*record)->VerifyPayloads() : record.status();
    DISTRO_RETURN_IF_ERROR(findings->Add(status));
    const absl::Duration now = Clock::Real()->MonotonicNow();
    if (now - said < kProgressInterval) continue;
    said = now;
    progress(absl::StrCat("verified ", round.value() + 1, " of ", end.value(), " rounds"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Report> VerifyLog(const LogVerifyOptions& options,
                                 const std::function<void(absl::string_view)>& progress) {
  DISTRO_ASSIGN_OR_RETURN(const StoredLog stored,
                          OpenStoredLog(options.data_dir, server::SnapshotCheck::kSha256));
  Findings findings;
  DISTRO_RETURN_IF_ERROR(findings.Add(server::CheckEpochFile(options.data_dir)));
  DISTRO_RETURN_IF_ERROR(findings.Add(
      server::AdmissionStore::Open(options.data_dir + "/admission.pb", nullptr).status()));
  DISTRO_ASSIGN_OR_RETURN(const size_t snapshots, VerifySnapshots(options.data_dir, &findings));
  const server::RoundLog& log = *stored.log;
  DISTRO_RETURN_IF_ERROR(VerifyPayloads(log, &findings, progress));
  if (findings.count > 0) {
    return absl::DataLossError(
        absl::StrCat(findings.count, " damaged:\n", absl::StrJoin(findings.named, "\n")));
  }
  const std::string hash = log.has_start() ? ToHex(log.HashBefore(log.next_round())) : "-";
  std::string text = absl::StrFormat(
      "run       %s\nrounds    %d, results kept from round %d on, %d bytes\n"
      "snapshots the initial one and %d later\nhash      %s\nno damage",
      ShownText(stored.run->run_id), log.next_round().value(), log.first_round().value(),
      log.bytes(), snapshots, hash);
  return Report{.text = std::move(text),
                .json = {{"run_id", stored.run->run_id},
                         {"rounds", log.next_round().value()},
                         {"first_round_kept", log.first_round().value()},
                         {"bytes", log.bytes()},
                         {"snapshots", snapshots},
                         {"hash", hash}}};
}

Command LogVerifyCommand(const Console* console) {
  const auto options = std::make_shared<LogVerifyOptions>();
  return {
      .name = "log verify",
      .summary = "Verifies checksums, hash chain, snapshots and every stored result.",
      .flags = {DataDirFlag(&options->data_dir)},
      .help =
          R"(Prints its progress on standard error. If it finds damage, it names file and part (ten at most) and ends with 4. The
remedy is in docs/operations.md, "Backup and restore". The aggregator may be running; a backup is verified the same way.

Example:
  distroctl log verify --data_dir backup)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(ReadLog(&options->data_dir, console->progress,
                                     [&] { return VerifyLog(*options, console->progress); }));
      }};
}

}  // namespace distro::tools
