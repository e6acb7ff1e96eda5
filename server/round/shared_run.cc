#include "server/round/shared_run.h"

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"
#include "common/net/wire/proto_time.h"

namespace distro::server {
namespace {

MembershipOptions MembershipOf(const RunContext& context, uint32_t max_workers) {
  const v1::RunConfig& config = context.run->config;
  return {.max_workers = static_cast<int>(max_workers),
          .lease = context.options.lease,
          .suspect_after = context.options.suspect_after,
          .min_workers = static_cast<int>(config.min_workers()),
          .probation_rounds = config.probation_rounds(),
          .data_fingerprint = config.data_fingerprint()};
}

}  // namespace

SharedRun::State::State(SharedRun* shared)
    : position(shared->context.run.get(), shared->context.epoch, shared->max_workers,
               shared->context.files.rounds->next_round()),
      control(&position, shared->context.log),
      workers(shared->context.run.get(), MembershipOf(shared->context, shared->max_workers),
              shared->context.clock, shared->context.log, shared->context.observer,
              [this](const Worker& worker, absl::string_view word, const absl::Status& end) {
                OnMemberChange(worker, word, end);
              }),
      integrity(shared->context.run.get(), shared->context.log, shared->context.observer),
      peer_checks(shared->context.run.get(), shared->context.epoch, shared->context.files.rounds,
                  shared->context.log),
      disk(shared->context.log, shared->context.observer),
      shared_(shared) {}

absl::Status SharedRun::State::Restore(const v1::StoredAdmission& decided) {
  const RunContext& context = shared_->context;
  const RoundLog& rounds = *context.files.rounds;
  DISTRO_RETURN_IF_ERROR(
      CheckRoom(*context.run, rounds.has_start(), shared_->max_workers, context.log));
  Membership& members = workers.members();
  if (rounds.has_start()) {
    members.FixFingerprint(rounds.start().data_fingerprint());
    DISTRO_ASSIGN_OR_RETURN(const std::vector<v1::Member> last,
                            position.Restore(rounds, [this](const v1::RoundHeader& header) {
                              workers.Learn(header, FromProto(header.duration()));
                              integrity.Learn(header);
                            }));
    members.Restore(last);
  }
  if (decided.has_extension()) position.Extend(decided.extension());
  control.Restore(decided);
  for (const v1::QuarantinedWorker& entry : decided.quarantined()) members.Quarantine(entry);
  quarantines_written = members.quarantine_changes();
  return absl::OkStatus();
}

// The round does not wait for a worker that is not ACTIVE.
void SharedRun::State::OnMemberChange(const Worker& worker, absl::string_view word,
                                      const absl::Status& end) {
  if (Round* round = position.round()) {
    if (worker.state != v1::MEMBER_STATE_ACTIVE) round->StopWaitingFor(worker.name);
    if (worker.state == v1::MEMBER_STATE_QUARANTINED) round->RemovePayloads(worker.name);
    if (word == "no_probation") round->EndProbation(worker.name);
  }
  if (!end.ok()) shared_->broadcast.Close(worker.name, end);
  WakeRoundThread();
}

void SharedRun::State::WakeRoundThread() {
  round_thread_woken = true;
  shared_->woken_.SignalAll();
}

SharedRun::SharedRun(const RunContext& constants)
    : context(constants),
      started_at(now()),
      max_workers(WorkersThatFit(*context.run, *context.files.rounds)),
      broadcast(context.options.ring_bytes, context.files.rounds->next_round(), context.clock,
                [observer = context.observer](absl::Duration busy) {
                  observer->OnPhase("broadcast", busy);
                }),
      damaged(context.log),
      state_(this) {}

void SharedRun::NoteDiskError(const absl::Status& error) {
  const Lock run(this);
  run->disk.Failed(run->position.head(), error);
}

void SharedRun::EndNow() {
  {
    const Lock run(this);
    run->control.End();
    run->WakeRoundThread();
  }
  broadcast.End(Draining());
}

void SharedRun::AwaitWork(absl::Duration until) {
  const absl::Duration timeout = std::min(until - now(), absl::Hours(1));
  absl::MutexLock lock(&mu_);
  woken_.WaitFor(&mu_, timeout, [this] {
    mu_.AssertHeld();
    return state_.round_thread_woken;
  });
  state_.round_thread_woken = false;
}

void SharedRun::AwaitEnd(absl::Duration timeout) const {
  absl::MutexLock lock(&mu_);
  woken_.WaitFor(&mu_, timeout, [this] {
    mu_.AssertHeld();
    return state_.control.ended();
  });
}

}  // namespace distro::server
