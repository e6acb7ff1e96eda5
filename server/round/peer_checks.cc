#include "server/round/peer_checks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

absl::Status Failed(absl::string_view reason, absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason, why);
}

absl::Status Diverged(absl::string_view why) {
  return Failed("diverged", absl::StrCat("diverged: ", why));
}

}  // namespace

absl::Status PeerChecks::CheckRun(absl::string_view run_id, absl::string_view theirs,
                                  absl::string_view ours) const {
  if (run_id == run_->run_id) return absl::OkStatus();
  return Failed("other_run",
                absl::StrCat("run_id: ", theirs, " ", run_id, ", ", ours, " ", run_->run_id));
}

absl::Status PeerChecks::CheckEpochSeen(uint64_t epoch) {
  if (epoch <= epoch_.value()) return absl::OkStatus();
  const absl::Status fenced =
      Failed("fenced", absl::StrCat("epoch ", epoch, " of this run was seen, ours is ",
                                    epoch_.value(), ": a newer aggregator has replaced this one"));
  if (!std::exchange(later_epoch_seen_, true)) log_->Error("fenced", {{"reason", fenced}});
  return fenced;
}

absl::Status PeerChecks::CheckEpoch(uint64_t epoch) {
  DISTRO_RETURN_IF_ERROR(CheckEpochSeen(epoch));
  if (epoch == epoch_.value()) return absl::OkStatus();
  return Failed("wrong_epoch",
                absl::StrCat("epoch ", epoch, ": the aggregator's is ", epoch_.value()));
}

absl::Status PeerChecks::CheckChain(RoundId head, RoundId from, uint64_t hash) const {
  // A newcomer does not know the start record's hash, and before the start there is none.
  if (from == RoundId(0) && (hash == 0 || !round_log_->has_start())) return absl::OkStatus();
  if (from > head) {
    return Diverged(absl::StrCat("round ", from.value(), " is ahead of the log, which ends before ",
                                 head.value()));
  }
  if (from < round_log_->begin()) {
    return Diverged(absl::StrCat("round ", from.value(), " is before the log, which begins with ",
                                 round_log_->begin().value()));
  }
  const uint64_t ours = round_log_->HashBefore(from);
  if (hash == ours) return absl::OkStatus();
  return Diverged(absl::StrCat("before round ", from.value(), " the chain hash is ", ToHex(ours),
                               ", not ", ToHex(hash)));
}

Progress PeerChecks::ProgressOf(const v1::HeartbeatRequest& request, RoundId head) const {
  if (!request.has_next_round()) return Progress::kBehind;
  const RoundId next(request.next_round());
  if (!CheckChain(head, next, request.log_hash()).ok()) return Progress::kDiverged;
  // The commit of the last round may be in flight: one round behind counts as caught up.
  return next == head || next.Next() == head ? Progress::kCaughtUp : Progress::kBehind;
}

}  // namespace distro::server
