#include "common/run/record/applied_log.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/run/record/log_reference.h"

namespace distro {
namespace {

// A `log_hash` of 0 before round 0 means that it is not known yet: any hash is accepted.
absl::Status CheckContinues(const CommittedRound& round, RoundId next_round, uint64_t log_hash) {
  const std::string where = absl::StrCat("round ", round.round().value());
  if (round.round() != next_round) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, ": the replica expects round ", next_round.value()));
  }
  const bool at_start = next_round == RoundId(0) && log_hash == 0;
  if (at_start || round.header->predecessor_hash() == log_hash) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "diverged",
      absl::StrCat(where, ": diverged: the predecessor's hash is ",
                   ToHex(round.header->predecessor_hash()), ", the replica's is ", ToHex(log_hash),
                   ": start again from a snapshot"));
}

}  // namespace

void AppliedLog::Begin(RoundId next_round, uint64_t log_hash, std::vector<uint64_t> tensor_hashes) {
  next_round_ = next_round;
  log_hash_ = log_hash;
  tensor_hashes_ = std::move(tensor_hashes);
}

absl::Status AppliedLog::ApplyNext(const CommittedRound& round, int threads, Update update) {
  DISTRO_RETURN_IF_ERROR(CheckContinues(round, next_round_, log_hash_));
  const std::string where = absl::StrCat("round ", round.round().value());
  absl::StatusOr<DecodedRound> decoded =
      DecodeRound(*layout_, *round.header, round.payloads, threads);
  DISTRO_RETURN_IF_ERROR(Annotate(decoded.status(), where));
  absl::StatusOr<std::vector<uint64_t>> hashes = update(round.header->step(), *std::move(decoded));
  DISTRO_RETURN_IF_ERROR(Annotate(hashes.status(), where));
  Begin(next_round_.Next(), round.hash, *std::move(hashes));
  return absl::OkStatus();
}

uint64_t AppliedLog::StateHash() const { return CombineTensorHashes(tensor_hashes_); }

}  // namespace distro
