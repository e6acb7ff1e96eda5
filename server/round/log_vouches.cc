#include "server/round/log_vouches.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/round_log/log_reference.h"

namespace distro::server {
namespace {

absl::Status Failed(absl::string_view reason, RoundId round, absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason,
                         absl::StrCat("snapshot: before round ", round.value(), " ", why));
}

}  // namespace

absl::Status CheckVouched(const RoundLog& round_log, const v1::SnapshotInfo& info) {
  const RoundId round(info.round());
  const RoundId next = round_log.next_round();
  if (round == RoundId(0) || round > next) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot: round ", round.value(),
                                                   " is not of the rounds 1 to ", next.value()));
  }
  const uint64_t chain = round_log.HashBefore(round);
  if (info.log_hash() != chain) {
    return Failed(
        "diverged", round,
        absl::StrCat("the chain hash is ", ToHex(chain), ", not ", ToHex(info.log_hash())));
  }
  if (round == next) {
    return Failed("no_reference", round,
                  "nobody has said yet which parameters are right: once the round is committed its "
                  "record does");
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

void LeaveOutUnvouched(const RoundLog& round_log, SnapshotStore* snapshots, Log* log) {
  for (const v1::SnapshotInfo& info : snapshots->List()) {
    if (info.round() == 0) continue;
    const absl::Status status = CheckVouched(round_log, info);
    if (status.ok()) continue;
    log->Error("snapshot left out: the log does not vouch for it",
               {{"round", info.round()}, {"error", status}});
    snapshots->LeaveOut(info.sha256());
  }
  const RoundId newest(snapshots->List().front().round());
  if (newest >= round_log.first_round()) return;
  log->Error("nobody new can join: the log begins after the newest snapshot that it vouches for",
             {{"first_round", round_log.first_round().value()}, {"snapshot", newest.value()}});
}

}  // namespace distro::server
