#include "tools/distroctl/replay_log.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/model/checkpoint/snapshot.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "tools/distroctl/log_copy.h"
#include "tools/distroctl/stored_log.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kProgressInterval = absl::Seconds(2);
constexpr size_t kMismatchesNamed = 10;

absl::Status Damage(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

// Compares the hashes that members reported with those of the replay.
struct Comparison {
  uint64_t reported = 0;
  uint64_t different = 0;
  std::vector<std::string> named;  // the first ones

  void Add(const v1::RoundHeader& header, uint64_t state_hash) {
    for (const v1::Member& member : header.members()) {
      if (!member.has_state_hash()) continue;
      ++reported;
      if (member.state_hash() == state_hash) continue;
      if (++different > kMismatchesNamed) continue;
      named.push_back(absl::StrCat("round ", header.round(), ": ", member.name(), " reported ",
                                   ToHex(member.state_hash()), ", the log gives ",
                                   ToHex(state_hash)));
    }
  }
};

absl::StatusOr<CommittedRound> ReadRound(const server::RecordReader& record, const Layout& layout) {
  std::vector<SharedBytes> payloads;
  for (SegmentId s(0); s.value() < record.segments(); s = s.Next()) {
    DISTRO_ASSIGN_OR_RETURN(std::string payload, record.Read(s, 0, record.payload_bytes(s)));
    payloads.push_back(std::make_shared<const std::string>(std::move(payload)));
  }
  absl::StatusOr<CommittedRound> round =
      MakeCommittedRound(record.header_bytes(), std::move(payloads), layout);
  if (!round.ok()) return Damage(record.path(), round.status().message());
  return round;
}

// The first snapshot of the replay: the earliest from which the log still has all results.
absl::StatusOr<v1::SnapshotInfo> FirstSnapshot(const std::string& data_dir,
                                               const StoredLog& stored) {
  const uint64_t first_round = stored.log->first_round().value();
  if (first_round <= stored.run->initial_snapshot.round()) return stored.run->initial_snapshot;
  DISTRO_ASSIGN_OR_RETURN(const auto listed, server::ReadSnapshotList(data_dir));
  for (const v1::SnapshotInfo& info : listed) {
    if (info.round() < first_round || info.round() > stored.log->next_round().value()) continue;
    DISTRO_RETURN_IF_ERROR(
        server::CheckStoredSnapshot(server::SnapshotPath(data_dir, info.round()), info));
    return info;
  }
  return absl::DataLossError(absl::StrCat(
      data_dir, ": the results of the rounds before ", first_round,
      " were dropped, and there is no snapshot to begin with: restore snapshots.pb and its files"));
}

absl::StatusOr<Replica> ReplicaOf(const v1::SnapshotInfo& info, const std::string& path,
                                  const StoredLog& stored, Backend* backend) {
  TensorBuffer parameters(*stored.run->layout);
  const absl::Status status = ReadSnapshot(path, *stored.run->layout, &parameters);
  if (!status.ok()) return Damage(path, status.message());
  const RoundId round(info.round());
  const bool started = stored.log->has_start();
  const uint64_t log_hash = started ? stored.log->HashBefore(round) : 0;
  Replica replica(stored.run->layout.get(), backend, std::move(parameters), round, log_hash);
  const uint64_t hash = replica.StateHash();
  const bool begins = round == RoundId(0);
  if (hash != info.state_hash() ||
      (begins && started && hash != stored.log->start().state_hash())) {
    return Damage(path, absl::StrCat("has state hash ", ToHex(hash), ", and the data folder says ",
                                     ToHex(info.state_hash())));
  }
  if (begins || info.log_hash() == log_hash) return replica;
  return Damage(path, absl::StrCat("continues a log with hash ", ToHex(info.log_hash()),
                                   ", the log has ", ToHex(log_hash), " there"));
}

absl::Status ApplyAll(const server::RoundLog& log, Replica* replica, Comparison* comparison,
                      const std::function<void(absl::string_view)>& progress) {
  absl::Duration said = Clock::Real()->MonotonicNow();
  const RoundId end = log.next_round();
  while (replica->next_round() != end) {
    DISTRO_ASSIGN_OR_RETURN(const auto record, log.OpenRecord(replica->next_round()));
    DISTRO_ASSIGN_OR_RETURN(const CommittedRound round, ReadRound(*record, replica->layout()));
    comparison->Add(*round.header, replica->StateHash());
    const absl::Status applied = replica->Apply(round);
    if (!applied.ok()) return Damage(record->path(), applied.message());
    const absl::Duration now = Clock::Real()->MonotonicNow();
    if (now - said < kProgressInterval) continue;
    said = now;
    progress(
        absl::StrCat("replayed ", replica->next_round().value(), " of ", end.value(), " rounds"));
  }
  return absl::OkStatus();
}

std::string Text(const StoredLog& stored, uint64_t rounds, RoundId first, Replica* replica,
                 const Comparison& comparison) {
  const std::string from =
      first == RoundId(0) ? ""
                          : absl::StrCat(", replayed from the snapshot before ", first.value());
  std::string text = absl::StrFormat(
      "run     %s\nrounds  %d of %d, %d bytes%s\nlog     %s\nstate   %s\n"
      "members %d state hashes reported, %d differ",
      ShownText(stored.run->run_id), replica->next_round().value(), rounds, stored.log->bytes(),
      from, ToHex(replica->log_hash()), ToHex(replica->StateHash()), comparison.reported,
      comparison.different);
  for (const std::string& line : comparison.named) absl::StrAppend(&text, "\n        ", line);
  return text;
}

}  // namespace

absl::StatusOr<Report> ReplayLog(const ReplayLogOptions& options,
                                 const std::function<void(absl::string_view)>& progress) {
  // The replay verifies the payloads.
  DISTRO_ASSIGN_OR_RETURN(const StoredLog stored,
                          OpenStoredLog(options.data_dir, server::SnapshotCheck::kSha256));
  DISTRO_ASSIGN_OR_RETURN(const v1::SnapshotInfo first, FirstSnapshot(options.data_dir, stored));
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  DISTRO_ASSIGN_OR_RETURN(Replica replica,
                          ReplicaOf(first, server::SnapshotPath(options.data_dir, first.round()),
                                    stored, backend.get()));
  Comparison comparison;
  DISTRO_RETURN_IF_ERROR(ApplyAll(*stored.log, &replica, &comparison, progress));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t rounds, RoundsOf(stored));
  Report report = {.text = Text(stored, rounds, RoundId(first.round()), &replica, comparison),
                   .json = {{"run_id", stored.run->run_id},
                            {"first_round", first.round()},
                            {"next_round", replica.next_round().value()},
                            {"rounds", rounds},
                            {"bytes", stored.log->bytes()},
                            {"log_hash", ToHex(replica.log_hash())},
                            {"state_hash", ToHex(replica.StateHash())},
                            {"reported", comparison.reported},
                            {"different", comparison.different},
                            {"differences", comparison.named}}};
  if (comparison.different > 0) {
    report.verdict =
        absl::AbortedError(absl::StrCat(comparison.different, " of ", comparison.reported,
                                        " state hashes that workers reported differ"));
  }
  return report;
}

Command LogReplayCommand(const Console* console) {
  const auto options = std::make_shared<ReplayLogOptions>();
  return {
      .name = "log replay",
      .summary =
          "Applies the whole log to the initial model, verifies it, compares the workers' hashes.",
      .flags = {DataDirFlag(&options->data_dir)},
      .help =
          R"(Reads the initial model and every record in order, verifies SHA-256, checksums and the hash chain, applies each round on
the CPU, and compares the state hash before it with those that its members reported. `state` is what every replica must
hold after these rounds. If old results were deleted, it begins with the earliest snapshot that the log continues.
If hashes differ, it ends with 5: the log is intact, those workers were not. The aggregator may be running.

Example:
  distroctl log replay --data_dir data)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(ReadLog(&options->data_dir, console->progress,
                                     [&] { return ReplayLog(*options, console->progress); }));
      }};
}

}  // namespace distro::tools
