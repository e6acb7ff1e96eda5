#include "tools/distroctl/replay_log.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/snapshot.h"
#include "common/replica/replica.h"
#include "kernels/backend.h"
#include "server/log/read_run.h"
#include "server/log/round_log.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kProgressInterval = absl::Seconds(2);
constexpr size_t kMismatchesNamed = 10;

absl::Status Damage(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

// What the members of rounds said about their parameters, against the replay.
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

absl::StatusOr<Replica> InitialReplica(const server::RunIdentity& run, const server::RoundLog& log,
                                       Backend* backend) {
  TensorBuffer parameters(*run.layout);
  const absl::Status status = ReadSnapshot(run.initial_snapshot_path, *run.layout, &parameters);
  if (!status.ok()) return Damage(run.initial_snapshot_path, status.message());
  Replica replica(run.layout.get(), backend, std::move(parameters), RoundId(0),
                  log.has_start() ? log.HashBefore(RoundId(0)) : 0);
  const uint64_t hash = replica.StateHash();
  if (hash == run.initial_snapshot.state_hash() &&
      (!log.has_start() || hash == log.start().state_hash())) {
    return replica;
  }
  return Damage(run.initial_snapshot_path,
                absl::StrCat("has state hash ", ToHex(hash), ", the run began with ",
                             ToHex(run.initial_snapshot.state_hash())));
}

absl::Status ApplyAll(const server::RoundLog& log, Replica* replica, Comparison* comparison,
                      const std::function<void(absl::string_view)>& progress) {
  absl::Time said = absl::Now();
  const RoundId end = log.next_round();
  while (replica->next_round() != end) {
    DISTRO_ASSIGN_OR_RETURN(const auto record, log.OpenRecord(replica->next_round()));
    DISTRO_ASSIGN_OR_RETURN(const CommittedRound round, ReadRound(*record, replica->layout()));
    comparison->Add(*round.header, replica->StateHash());
    const absl::Status applied = replica->Apply(round);
    if (!applied.ok()) return Damage(record->path(), applied.message());
    if (absl::Now() - said < kProgressInterval) continue;
    said = absl::Now();
    progress(
        absl::StrCat("replayed ", replica->next_round().value(), " of ", end.value(), " rounds"));
  }
  return absl::OkStatus();
}

std::string Text(const server::RunIdentity& run, uint64_t bytes, Replica* replica,
                 const Comparison& comparison) {
  std::string text = absl::StrFormat(
      "run     %s\nrounds  %d of %d, %d bytes\nlog     %s\nstate   %s\n"
      "members %d state hashes reported, %d differ",
      run.run_id, replica->next_round().value(), run.config.rounds(), bytes,
      ToHex(replica->log_hash()), ToHex(replica->StateHash()), comparison.reported,
      comparison.different);
  for (const std::string& line : comparison.named) absl::StrAppend(&text, "\n        ", line);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReplayLog(const ReplayLogOptions& options,
                                      const std::function<void(absl::string_view)>& progress) {
  if (options.data_dir.empty())
    return absl::InvalidArgumentError("--data_dir: is required, an aggregator's data folder");
  const auto run = server::ReadRun(options.data_dir, server::SnapshotCheck::kSha256);
  if (absl::IsNotFound(run.status()))
    return absl::NotFoundError(absl::StrCat("--data_dir: ", options.data_dir, ": holds no run"));
  DISTRO_RETURN_IF_ERROR(run.status());
  // The payloads are verified when they are replayed.
  DISTRO_ASSIGN_OR_RETURN(
      const auto log,
      server::RoundLog::OpenReadOnly(options.data_dir + "/rounds", (*run)->layout.get(), 0));
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  DISTRO_ASSIGN_OR_RETURN(Replica replica, InitialReplica(**run, *log, backend.get()));
  Comparison comparison;
  DISTRO_RETURN_IF_ERROR(ApplyAll(*log, &replica, &comparison, progress));
  std::string text = Text(**run, log->bytes(), &replica, comparison);
  if (comparison.different > 0) return absl::AbortedError(text);
  return text;
}

}  // namespace distro::tools
