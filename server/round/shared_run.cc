#include "server/round/shared_run.h"

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"
#include "common/wire/proto_time.h"

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

SharedRun::SharedRun(const RunContext& constants)
    : context(constants),
      started_at(now()),
      max_workers(WorkersThatFit(*context.run, *context.files.rounds)),
      broadcast(context.options.ring_bytes, context.files.rounds->next_round(), context.clock,
                [observer = context.observer](absl::Duration busy) {
                  observer->OnPhase("broadcast", busy);
                }),
      damaged(context.log),
      position(context.run.get(), context.epoch, max_workers, context.files.rounds->next_round()),
      control(&position, context.log),
      workers(context.run.get(), MembershipOf(context, max_workers), context.clock, context.log,
              context.observer,
              [this](const Worker& worker, absl::string_view word, const absl::Status& end) {
                mu.AssertHeld();
                OnMemberChange(worker, word, end);
              }),
      integrity(context.run.get(), context.log, context.observer),
      peer_checks(context.run.get(), context.epoch, context.files.rounds, context.log),
      disk(context.log, context.observer) {}

absl::Status SharedRun::Restore(const v1::StoredAdmission& decided) {
  absl::MutexLock lock(&mu);
  const RoundLog& rounds = *context.files.rounds;
  DISTRO_RETURN_IF_ERROR(CheckRoom(*context.run, rounds.has_start(), max_workers, context.log));
  Membership& members = workers.members();
  if (rounds.has_start()) {
    members.FixFingerprint(rounds.start().data_fingerprint());
    DISTRO_ASSIGN_OR_RETURN(const std::vector<v1::Member> last,
                            position.Restore(rounds, [this](const v1::RoundHeader& header) {
                              mu.AssertHeld();
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

void SharedRun::NoteDiskError(const absl::Status& error) {
  absl::MutexLock lock(&mu);
  disk.Failed(position.head(), error);
}

void SharedRun::EndNow() {
  {
    absl::MutexLock lock(&mu);
    control.End();
    Poke();
  }
  broadcast.End(Draining());
}

void SharedRun::Poke() {
  poked_ = true;
  changed_.SignalAll();
}

void SharedRun::WaitForPoke(absl::Duration until) {
  const absl::Duration timeout = std::min(until - now(), absl::Hours(1));
  absl::MutexLock lock(&mu);
  if (!poked_ && timeout > absl::ZeroDuration()) changed_.WaitWithTimeout(&mu, timeout);
  poked_ = false;
}

// The round does not wait for a worker that is not ACTIVE.
void SharedRun::OnMemberChange(const Worker& worker, absl::string_view word,
                               const absl::Status& end) {
  if (Round* round = position.round()) {
    if (worker.state != v1::MEMBER_STATE_ACTIVE) round->StopWaitingFor(worker.name);
    if (worker.state == v1::MEMBER_STATE_QUARANTINED) round->RemovePayloads(worker.name);
    if (word == "no_probation") round->EndProbation(worker.name);
  }
  if (!end.ok()) broadcast.Close(worker.name, end);
  Poke();
}

}  // namespace distro::server
