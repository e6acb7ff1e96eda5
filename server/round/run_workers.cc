#include "server/round/run_workers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/median.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/net/wire/proto_time.h"
#include "common/run/local_data.h"
#include "common/run/pinned_tokenizer.h"
#include "common/run/record/committed_round.h"
#include "common/run/record/header_bound.h"
#include "server/session/worker_version.h"

namespace distro::server {
namespace {

AdaptiveDeadline DeadlineOf(const v1::RunConfig& config) {
  if (!config.has_round_deadline()) return {absl::Seconds(1), absl::InfiniteDuration()};
  const absl::Duration longest = FromProto(config.round_deadline());
  // No worker sends before the window is over, unless all take every step.
  const absl::Duration window =
      config.has_round_window() ? FromProto(config.round_window()) : absl::ZeroDuration();
  return {window + FromProto(config.min_round_deadline()), longest};
}

// The status with which a worker's streams end, if its new state ends them.
absl::Status EndOfStreams(const Worker& worker, absl::string_view word) {
  const std::string who = absl::StrCat("worker ", worker.name, ": ");
  if (worker.state == v1::MEMBER_STATE_QUARANTINED) {
    return ErrorWithReason(
        absl::StatusCode::kPermissionDenied, "quarantined",
        absl::StrCat(who, "quarantined: ", worker.reason,
                     "; an operator can admit it: distroctl admit ", worker.name));
  }
  if (worker.state != v1::MEMBER_STATE_LEFT) return absl::OkStatus();
  if (word == "left") return absl::CancelledError(absl::StrCat(who, "it left"));
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "no_session",
                         absl::StrCat(who, "lease over: join again"));
}

}  // namespace

RunWorkers::RunWorkers(const RunIdentity* run, const MembershipOptions& options, const Clock* clock,
                       Log* log, RunObserver* observer, OnChange on_change)
    : run_(run),
      clock_(clock),
      observer_(observer),
      on_change_(std::move(on_change)),
      started_at_(clock->MonotonicNow()),
      members_(options, log,
               [this](const Worker& worker, absl::string_view word) { Changed(worker, word); }),
      deadline_(DeadlineOf(run->config)) {}

void RunWorkers::Changed(const Worker& worker, absl::string_view word) {
  observer_->OnMemberChange(word);
  state_since_[worker.name] = clock_->MonotonicNow();
  if (state_since_.size() > members_.workers().size()) {
    std::erase_if(state_since_,
                  [this](const auto& entry) { return members_.Find(entry.first) == nullptr; });
  }
  on_change_(worker, word, EndOfStreams(worker, word));
}

absl::Status RunWorkers::CheckLink(uint64_t download_bytes_per_second) const {
  if (log_rate_.CanFollow(download_bytes_per_second)) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, "too_slow",
      absl::StrCat("this link receives ", download_bytes_per_second,
                   " bytes a second and the log grows by ", log_rate_.BytesPerSecond(),
                   ": this worker would never catch up"));
}

absl::StatusOr<bool> RunWorkers::Join(const v1::JoinRequest& request) {
  DISTRO_RETURN_IF_ERROR(CheckWorkerVersion(request.version(), Version()));
  DISTRO_RETURN_IF_ERROR(CheckLink(request.download_bytes_per_second()));
  DISTRO_RETURN_IF_ERROR(CheckOwnTokens(run_->config, request.own_tokens()));
  DISTRO_RETURN_IF_ERROR(CheckTokenizer(run_->config, request.tokenizer()));
  const Worker* before = members_.Find(request.worker().name());
  const uint64_t old_incarnation = before == nullptr ? 0 : before->incarnation;
  DISTRO_RETURN_IF_ERROR(members_.Join(request.worker(), request.data_fingerprint(),
                                       clock_->MonotonicNow(), request.own_tokens()));
  return old_incarnation != 0 && old_incarnation != request.worker().incarnation();
}

bool RunWorkers::quarantined(absl::string_view name) const {
  const Worker* worker = members_.Find(name);
  return worker != nullptr && worker->state == v1::MEMBER_STATE_QUARANTINED;
}

void RunWorkers::RoundOpened(RoundId round) { update_times_.Open(round, clock_->MonotonicNow()); }

void RunWorkers::Learn(const v1::RoundHeader& header, absl::Duration duration) {
  log_rate_.Add(ResultBytes(header), duration);
}

void RunWorkers::TimeUpdate(RoundId round, const std::string& worker) {
  const Worker* found = members_.Find(worker);
  if (found == nullptr || found->weight() == 0) return;
  const std::optional<UpdateTime> time =
      update_times_.Arrived(round, worker, clock_->MonotonicNow());
  if (!time) return;
  deadline_.Add(round, time->since_open);
  observer_->OnUpdateTimed(worker, round, time->since_open);
  if (time->lateness) observer_->OnLateUpdate(*time->lateness);
}

v1::LinkNeeds RunWorkers::LinkNeeds() const {
  v1::LinkNeeds needs;
  needs.set_update_bytes(run_->method->UpdateBytes());
  needs.set_overlap(run_->config.overlap());
  needs.set_workers(static_cast<uint32_t>(members_.Count(v1::MEMBER_STATE_ACTIVE)));
  if (log_rate_.MeanResultBytes() == 0) return needs;
  needs.set_result_bytes(log_rate_.MeanResultBytes());
  *needs.mutable_round_duration() = ToProto(log_rate_.MeanDuration());
  return needs;
}

std::optional<double> RunWorkers::EvaluationLoss() const {
  std::vector<double> losses;
  for (const auto& [name, worker] : members_.workers()) {
    if (worker.weight() > 0 && worker.evaluation_loss) losses.push_back(*worker.evaluation_loss);
  }
  if (losses.empty()) return std::nullopt;
  return Median(std::move(losses));
}

void RunWorkers::FillStatus(RunStatus* status) const {
  for (const auto& [name, worker] : members_.workers()) {
    status->workers.push_back(worker);
    const auto since = state_since_.find(name);
    status->since.push_back(since == state_since_.end() ? started_at_ : since->second);
  }
}

uint32_t WorkersThatFit(const RunIdentity& run, const RoundLog& rounds) {
  uint32_t fit = MostMembers(HeaderShapeOf(run.config, *run.layout));
  if (fit < run.config.max_workers() && rounds.next_round() > RoundId(0)) {
    // A run of an earlier version keeps the workers that it has.
    const auto newest = rounds.Header(RoundId(rounds.next_round().value() - 1));
    if (newest.ok()) fit = std::max<uint32_t>(fit, newest->members_size());
    fit = std::max(fit, run.config.min_workers());
  }
  return std::min(run.config.max_workers(), fit);
}

absl::Status CheckRoom(const RunIdentity& run, bool started, uint32_t max_workers, Log* log) {
  const absl::Status room = CheckHeaderBound(run.config, HeaderShapeOf(run.config, *run.layout));
  if (room.ok()) return room;
  if (max_workers < (started ? run.config.min_workers() : run.config.start_workers())) return room;
  log->Warning("fewer workers than max_workers are admitted",
               {{"admitted", max_workers}, {"reason", room}});
  return absl::OkStatus();
}

}  // namespace distro::server
