#include "server/round/snapshot_transfers.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/run/record/log_reference.h"
#include "server/round/control.h"

namespace distro::server {
namespace {

absl::Status Failed(absl::string_view reason, RoundId round, absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason,
                         absl::StrCat("snapshot: before round ", round.value(), " ", why));
}

}  // namespace

absl::Status CheckConfirmed(const RoundLog& round_log, const v1::SnapshotInfo& info) {
  const RoundId round(info.round());
  const RoundId next = round_log.next_round();
  if (round == RoundId(0) || round > next) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot: round ", round.value(),
                                                   " is not of the rounds 1 to ", next.value()));
  }
  if (round < round_log.begin())
    return Failed("diverged", round, "the log has no record of it any more");
  const uint64_t chain = round_log.HashBefore(round);
  if (info.log_hash() != chain) {
    return Failed(
        "diverged", round,
        absl::StrCat("the chain hash is ", ToHex(chain), ", not ", ToHex(info.log_hash())));
  }
  if (round == next) {
    return Failed(
        "no_reference", round,
        "it is not known yet which parameters are right: the record of this round will say it");
  }
  DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, round_log.Header(round));
  const std::optional<LogReference> reference = ReferenceOf(header);
  if (!reference) {
    return Failed("no_majority", round,
                  "the workers did not agree on the parameters: take those of a later round");
  }
  if (reference->state_hash == info.state_hash()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("snapshot: before round ", round.value(), " the state hash is ",
                   ToHex(reference->state_hash), ", not ", ToHex(info.state_hash())));
}

void LeaveOutUnconfirmed(const RoundLog& round_log, SnapshotStore* snapshots, Log* log) {
  std::vector<v1::SnapshotInfo> later = snapshots->List();
  later.pop_back();  // the initial one, which needs no confirmation
  for (const v1::SnapshotInfo& info : later) {
    const absl::Status status = CheckConfirmed(round_log, info);
    if (status.ok()) continue;
    log->Error("snapshot not offered to joiners: the log does not confirm it",
               {{"round", info.round()}, {"error", status}});
    snapshots->LeaveOut(info.sha256());
  }
  const RoundId newest(snapshots->List().front().round());
  if (newest >= round_log.first_round()) return;
  log->Error("no new worker can join: the log begins after the newest snapshot that it confirms",
             {{"first_round", round_log.first_round().value()}, {"snapshot", newest.value()}});
}

SnapshotTransfers::SnapshotTransfers(SnapshotStore* snapshots, RoundLog* round_log,
                                     const RoundManager* manager, Log* log)
    : snapshots_(snapshots), round_log_(round_log), manager_(manager), log_(log) {
  jobs_.push_back({});
  thread_ = std::thread([this] { Run(); });
}

SnapshotTransfers::~SnapshotTransfers() {
  std::deque<Job> left;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    left.swap(jobs_);
  }
  thread_.join();
  for (const Job& job : left) {
    if (job.done) job.done(Draining());
  }
}

absl::StatusOr<SnapshotTicket> SnapshotTransfers::Begin(const v1::UploadSnapshotHeader& header) {
  if (header.run_id() != manager_->run().run_id) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run",
                           absl::StrCat("run_id: the snapshot is of run ", header.run_id(),
                                        ", the aggregator's is ", manager_->run().run_id));
  }
  SnapshotTicket ticket;
  ticket.snapshot = header.snapshot();
  DISTRO_RETURN_IF_ERROR(CheckConfirmed(*round_log_, ticket.snapshot));
  absl::MutexLock lock(&upload_mu_);
  DISTRO_ASSIGN_OR_RETURN(ticket.offset, snapshots_->IncomingBytes(ticket.snapshot));
  if (ticket.complete()) ticket.stored = Find(ticket.snapshot.sha256()).ok();
  ticket.number = ++newest_ticket_;
  return ticket;
}

absl::Status SnapshotTransfers::Add(SnapshotTicket* ticket, const v1::SnapshotFrame& frame) {
  absl::MutexLock lock(&upload_mu_);
  if (ticket->number != newest_ticket_)
    return absl::AbortedError("another upload of a snapshot has started: this one was ended");
  const uint64_t left = ticket->snapshot.size_bytes() - ticket->offset;
  if (frame.offset() != ticket->offset || frame.data().empty() || frame.data().size() > left) {
    return absl::InvalidArgumentError(absl::StrCat(
        "frame: ", frame.data().size(), " bytes at offset ", frame.offset(), " where byte ",
        ticket->offset, " of ", ticket->snapshot.size_bytes(), " comes next"));
  }
  DISTRO_RETURN_IF_ERROR(
      snapshots_->AppendIncoming(ticket->snapshot, frame.offset(), frame.data()));
  ticket->offset += frame.data().size();
  return absl::OkStatus();
}

void SnapshotTransfers::Adopt(const SnapshotTicket& ticket,
                              std::function<void(absl::Status)> done) {
  {
    absl::MutexLock lock(&mu_);
    if (!closed_) {
      jobs_.push_back({ticket.snapshot, std::move(done)});
      return;
    }
  }
  done(Draining());
}

absl::StatusOr<SnapshotTransfers::StoredFile> SnapshotTransfers::Find(
    absl::string_view sha256) const {
  for (const v1::SnapshotInfo& info : snapshots_->List()) {
    if (info.sha256() != sha256) continue;
    DISTRO_ASSIGN_OR_RETURN(std::string path, snapshots_->PathOf(sha256));
    return StoredFile{std::move(path), info.size_bytes()};
  }
  const RunIdentity& run = manager_->run();
  for (const v1::CompanionFile& file : run.companions) {
    if (file.sha256() == sha256)
      return StoredFile{absl::StrCat(run.companions_dir, "/", file.name()), file.size_bytes()};
  }
  return absl::NotFoundError("sha256: no kept snapshot and no companion file has it");
}

void SnapshotTransfers::Run() {
  while (true) {
    Job job;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &SnapshotTransfers::HasNews));
      if (closed_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    const absl::Status status = job.done ? AdoptNow(job.snapshot) : absl::OkStatus();
    if (status.ok()) Prune();
    if (job.done) job.done(status);
  }
}

absl::Status SnapshotTransfers::AdoptNow(const v1::SnapshotInfo& snapshot) {
  const absl::Status status = snapshots_->Adopt(snapshot);  // its round's record does not change
  if (!status.ok()) {
    log_->Warning("snapshot refused", {{"round", snapshot.round()}, {"status", status}});
  }
  return status;
}

// Drops rounds before the older of the two kept snapshots: no joiner needs them. The log confirms
// both, as checked at the start (LeaveOutUnconfirmed) or when they arrived.
void SnapshotTransfers::Prune() {
  const std::vector<v1::SnapshotInfo> list = snapshots_->List();  // newest first
  if (list.size() < 2) return;
  const RoundId first(list[1].round());
  const bool dropped = first > round_log_->first_round();
  if (const absl::Status status = round_log_->Prune(first); !status.ok()) {
    log_->Error("old rounds not dropped: will try again after the next snapshot",
                {{"before", first.value()}, {"status", status}});
    return;
  }
  if (!dropped) return;  // only packed, if an older version had not
  log_->Info("old rounds dropped", {{"before", first.value()}, {"log_bytes", round_log_->bytes()}});
}

}  // namespace distro::server
