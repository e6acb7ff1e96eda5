#include "server/round/round_thread.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/feed/frame_ring.h"
#include "common/run/round/record.h"
#include "server/log/disk.h"

namespace distro::server {
namespace {

constexpr absl::Duration kRetryInterval = absl::Seconds(1);

// Under the mutex, so that no payload arrives between the decision and the closing.
void TakeSegments(const RoundTask& task, SharedRun::State* run,
                  std::vector<ClosedSegment>* closed) {
  if (task.by_deadline) run->position.CloseByDeadline();
  Round* const round = run->position.round();
  for (const std::string& name : CloseSegments(task.segments, round, closed)) {
    round->StopWaitingFor(name);
    run->workers.members().Apply(name, MemberEvent::kMissedDeadline);
  }
}

}  // namespace

absl::StatusOr<absl::Duration> RoundThread::Step() {
  step_began_ = absl::ToInt64Nanoseconds(shared_->now());
  absl::StatusOr<absl::Duration> next = DoWhatIsDue();
  step_began_ = kNoStep;
  return next;
}

absl::Duration RoundThread::StepTakes() const {
  const int64_t began = step_began_;
  if (began == kNoStep) return absl::ZeroDuration();
  return shared_->now() - absl::Nanoseconds(began);
}

absl::StatusOr<absl::Duration> RoundThread::DoWhatIsDue() {
  while (true) {
    std::vector<ClosedSegment> closed;
    const RoundTask task = TakeTask(&closed);
    if (task.kind == RoundTask::kNone) return task.at;
    if (absl::Status status = Do(task, closed); !status.ok()) {
      DISTRO_RETURN_IF_ERROR(HandleError(status));
    }
  }
}

RoundTask RoundThread::TakeTask(std::vector<ClosedSegment>* closed) {
  const absl::Duration now = shared_->now();
  const SharedRun::Lock run(shared_);
  Membership& members = run->workers.members();
  while (true) {
    RoundTask task = NextTask({.config = &context_.run->config,
                               .control = &run->control,
                               .members = &members,
                               .position = &run->position,
                               .started = context_.files.rounds->has_start(),
                               .header_made = recorder_.has_header(),
                               .quarantines_written = run->quarantines_written,
                               .retry_at = run->disk.retry_at(),
                               .grace_ends = shared_->started_at + context_.options.lease},
                              now);
    if (task.show_pause) run->control.ShowPause();
    if (task.state_now) run->control.Set(task.state_now->state, task.state_now->reason);
    if (task.kind == RoundTask::kExpire) {
      members.ExpireLeases(now);
      members.SuspectSilent(now);
    } else if (task.kind == RoundTask::kEnter) {
      members.EnterSynced();
    } else {
      if (task.kind == RoundTask::kClose) TakeSegments(task, &*run, closed);
      return task;
    }
  }
}

absl::Status RoundThread::HandleError(const absl::Status& error) {
  // Another aggregator's record, damage, or a bug: trying again would not help. All else is the
  // disk's.
  if (absl::IsFailedPrecondition(error) || absl::IsAborted(error) || absl::IsDataLoss(error) ||
      absl::IsInternal(error))
    return error;
  shared_->NoteDiskError(error);
  const SharedRun::Lock run(shared_);
  run->disk.TryAgainAt(shared_->now() + kRetryInterval);
  run->control.Set(run->control.state(),
                   absl::StrCat("the log cannot be written: ", DiskErrorInShort(error)));
  return absl::OkStatus();
}

absl::Status RoundThread::Do(const RoundTask& task, absl::Span<const ClosedSegment> closed) {
  switch (task.kind) {
    case RoundTask::kNone:
    case RoundTask::kExpire:  // TakeTask did it
    case RoundTask::kEnter:
      break;
    case RoundTask::kAdmission:
      return decisions_->WriteQuarantines();
    case RoundTask::kStart:
      return WriteStart();
    case RoundTask::kOpen:
      OpenRound();
      break;
    case RoundTask::kReopen:
      ReopenRound();
      break;
    case RoundTask::kClose:
      return CombineSegments(closed);
    case RoundTask::kCommit:
      return CommitRound();
    case RoundTask::kDone:
      FinishRun();
      break;
    case RoundTask::kDrained:
      shared_->EndNow();
      break;
  }
  return absl::OkStatus();
}

absl::Status RoundThread::WriteStart() {
  const RunIdentity& identity = *context_.run;
  if (!start_) {
    const SharedRun::Lock run(shared_);
    const Membership& members = run->workers.members();
    start_ = MakeStartHeader({.run_id = identity.run_id,
                              .data_fingerprint = members.fingerprint(),
                              .state_hash = identity.initial_snapshot.state_hash()},
                             *identity.layout, identity.config, members.TakingPart());
  }
  const v1::StartHeader& start = *start_;
  DISTRO_RETURN_IF_ERROR(context_.files.rounds->WriteStart(start));
  const SharedRun::Lock run(shared_);
  run->workers.members().FixFingerprint(start.data_fingerprint());
  run->position.Start(start);
  run->disk.Wrote(run->position.head());
  context_.log->Info("run started", {{"run", identity.run_id},
                                     {"workers", start.slots_size()},
                                     {"data", start.data_fingerprint()},
                                     {"state_hash", ToHex(start.state_hash())}});
  return absl::OkStatus();
}

void RoundThread::OpenRound() {
  v1::RoundOpen open;
  RoundId round;
  {
    const SharedRun::Lock run(shared_);
    RunPosition& position = run->position;
    round = position.head();
    position.Open(run->workers.members(), run->workers.Deadline(),
                  run->integrity.DrawAudited(round, context_.clock->WallNow()), shared_->now());
    run->workers.RoundOpened(round);
    open = position.MakeOpen(shared_->now());
    const int expected = position.round()->expected();
    context_.observer->OnRoundOpened(round, expected);
    context_.log->Debug("round opened", {{"round", round.value()}, {"expected", expected}});
  }
  recorder_.Open(round);
  shared_->broadcast.Open(MakeOpenFrame(context_.epoch, round, open, shared_->now()));
}

void RoundThread::ReopenRound() {
  v1::RoundOpen open;
  RoundId round;
  {
    const SharedRun::Lock run(shared_);
    RunPosition& position = run->position;
    round = position.head();
    const size_t added = position.Reopen(run->workers.members());
    open = position.MakeOpen(shared_->now());
    context_.log->Info(
        "round opened again with samples for more workers",
        {{"round", round.value()}, {"added", added}, {"expected", position.round()->expected()}});
  }
  shared_->broadcast.Reopen(
      MakeOpenFrame(context_.epoch, round, open, shared_->now()),
      absl::UnavailableError("the round was opened again with samples for more workers"));
}

absl::Status RoundThread::CombineSegments(absl::Span<const ClosedSegment> closed) {
  RoundId round;
  {
    const SharedRun::Lock run(shared_);
    round = run->position.head();
  }
  return CombineClosed(*context_.run, round, closed, *context_.clock,
                       [&](const ClosedSegment& segment, const SegmentResult& result) {
                         return PublishSegment(round, segment, result);
                       });
}

absl::Status RoundThread::PublishSegment(RoundId round, const ClosedSegment& closed,
                                         const SegmentResult& result) {
  const absl::Duration combined = shared_->now();
  // Before it is on the disk: nobody applies a result before the commit frame.
  std::vector<RoundFrame> frames =
      MakeSegmentFrames(context_.epoch, round, closed.segment, *result.payload, combined);
  if (context_.options.serves_objects) {
    shared_->open_results.Add({round, closed.segment}, result);
    frames.push_back(MakeObjectFrame(context_.epoch, round, closed.segment, result.payload->size(),
                                     AsBytes(result.sha256)));
  }
  shared_->broadcast.Add(std::move(frames));
  const absl::Duration sent = shared_->now();
  context_.observer->OnSegmentResult(result, sent - closed.last_in);
  {
    const SharedRun::Lock run(shared_);
    run->position.round()->SetResult(closed.segment, result);
  }
  // If this fails, the commit writes it again.
  if (const absl::Status status = recorder_.Add(closed.segment, result.payload); !status.ok())
    shared_->NoteDiskError(status);
  context_.observer->OnPhase("log", shared_->now() - sent);
  if (closed.audited.empty()) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const Integrity::Counts counts,
                          Audit(*context_.run->method, round, closed));
  const SharedRun::Lock run(shared_);
  run->integrity.AddAudit(round, counts);
  return absl::OkStatus();
}

std::string RoundThread::MakeHeader() {
  const SharedRun::Lock run(shared_);
  RunPosition& position = run->position;
  const uint64_t predecessor = context_.files.rounds->HashBefore(position.head());
  return position
      .MakeHeader(run->workers.members(), predecessor, run->control.paused(), *context_.clock)
      .SerializeAsString();
}

absl::Status RoundThread::CommitRound() {
  const absl::Duration start = shared_->now();
  // Once per round: after a failed write the same bytes are tried again.
  if (!recorder_.has_header()) recorder_.SetHeader(MakeHeader());
  DISTRO_RETURN_IF_ERROR(recorder_.Commit());
  context_.observer->OnPhase("log", shared_->now() - start);
  v1::RoundHeader header;
  header.ParseFromString(recorder_.header());
  // Only what is durable is announced.
  FinishRound(header);
  shared_->broadcast.Commit(
      MakeCommitFrame(context_.epoch, RoundId(header.round()), recorder_.header()));
  recorder_.Clear();
  shared_->open_results.Clear();
  return absl::OkStatus();
}

void RoundThread::FinishRound(const v1::RoundHeader& header) {
  const SharedRun::Lock run(shared_);
  RunPosition& position = run->position;
  CommittedRoundInfo info = position.Describe(header, shared_->now());
  info.eval_loss = run->workers.EvaluationLoss();
  context_.observer->OnRoundCommitted(info);
  context_.log->Info(
      "round committed",
      {{"round", header.round()},
       {"workers", absl::StrCat(position.round()->contributors(), "/", header.members_size())},
       {"bytes", info.result_bytes},
       {"seconds", absl::ToDoubleSeconds(info.duration)},
       {"reason", header.reason()}});
  empty_rounds_ = position.round()->contributors() == 0 ? empty_rounds_ + 1 : 0;
  run->disk.Wrote(position.head());
  run->integrity.Judge(header, *position.round(), &run->workers.members());
  run->workers.Learn(header, info.duration);
  run->workers.RoundOver();
  position.Finish(header);
}

void RoundThread::FinishRun() {
  const SharedRun::Lock run(shared_);
  if (run->position.has_rounds()) return;  // extended a moment ago
  std::string reason = "all rounds are committed";
  if (empty_rounds_ > 0) {
    absl::StrAppend(&reason, ", but all workers abstained in the last ", empty_rounds_,
                    ": no step was finite, and nothing was learned in them");
  }
  run->control.Set(v1::RUN_STATE_DONE, std::move(reason));
  shared_->broadcast.End(absl::OkStatus());
}

}  // namespace distro::server
