#include "common/client/follow/head_watch.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/client/await_call.h"
#include "common/client/backoff.h"

namespace distro {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(10);

// An error if a client cannot start from this answer.
absl::Status CheckUsable(const v1::GetRunResponse& run) {
  if (run.run_id().empty()) return absl::UnavailableError("there is no run yet");
  if (run.snapshots().empty()) return absl::UnavailableError("there is no snapshot yet");
  for (const v1::SnapshotInfo& snapshot : run.snapshots()) {
    if (snapshot.sha256().size() != 32 || snapshot.size_bytes() == 0) {
      return absl::InvalidArgumentError("snapshots: one without a SHA-256 or a size");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::GetRunResponse> GetRun(const Follower& follower, Connection* connection,
                                          absl::Duration wait) {
  ClientCall call(follower.state);
  const bool waits = wait > absl::ZeroDuration();
  call.context()->set_wait_for_ready(waits);
  const v1::GetRunRequest request;
  v1::GetRunResponse response;
  const std::shared_ptr<Connection::AdminStub> stub = connection->admin();
  absl::Status status =
      AwaitCall(call.context(), waits ? std::min(wait, kTimeout) : kTimeout, [&](AnswerTaker done) {
        stub->async()->GetRun(call.context(), &request, &response, std::move(done));
      });
  if (status.ok() && !response.run_id().empty()) {
    status = CheckEpoch(EpochId(response.epoch()), follower.state->view().epoch,
                        follower.clock->WallNow());
  }
  connection->Heed(status);
  DISTRO_RETURN_IF_ERROR(status);
  return response;
}

absl::StatusOr<v1::GetRunResponse> AwaitRun(const Follower& follower, Connection* connection,
                                            FirstContact* contact) {
  Backoff backoff(follower.backoff, follower.seed + 1);
  const auto wanted = [&follower] { return !follower.state->ended(); };
  absl::Duration wait = absl::ZeroDuration();
  contact->Begin();
  while (true) {
    absl::StatusOr<v1::GetRunResponse> run = GetRun(follower, connection, wait);
    if (run.ok()) contact->Answered();
    const absl::Status status = run.ok() ? CheckUsable(*run) : run.status();
    if (status.ok()) return run;
    if (follower.state->ended()) return follower.state->end_status();
    const absl::Status end = MayPass(follower, status) ? contact->Failed(status, wanted)
                                                       : contact->Explained(status, wanted);
    if (follower.state->ended()) return follower.state->end_status();
    DISTRO_RETURN_IF_ERROR(end);
    follower.state->Sleep(std::min(DelayAfter(status, &backoff), contact->Left()));
    wait = contact->ConnectionWait();
  }
}

HeadWatch::HeadWatch(const Follower& follower, Connection* connection, absl::Duration interval,
                     std::function<void(const v1::GetRunResponse&)> observer)
    : follower_(follower),
      connection_(connection),
      interval_(interval),
      observer_(std::move(observer)),
      thread_([this] { Run(); }) {}

HeadWatch::~HeadWatch() {
  done_.Notify();
  thread_.join();
}

void HeadWatch::Run() {
  absl::Duration wait = absl::ZeroDuration();
  do {
    const absl::StatusOr<v1::GetRunResponse> run = GetRun(follower_, connection_, wait);
    wait = run.ok() ? absl::ZeroDuration() : kTimeout;
    if (run.ok() && !done_.WaitFor(absl::ZeroDuration())) observer_(*run);
  } while (!done_.WaitFor(interval_));
}

}  // namespace distro
