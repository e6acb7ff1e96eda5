// RoundManager: the end of a round: its header, its record, what it taught.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/round/record.h"
#include "common/round_log/header_bound.h"
#include "common/rpc/proto_time.h"
#include "server/round/round_manager.h"
#include "server/subscription/frame_ring.h"

namespace distro::server {
namespace {

// Peers say what they like: a few of them move the median little, and the mean anywhere.
std::optional<double> EvaluationLoss(const Membership& membership) {
  std::vector<double> losses;
  for (const auto& [name, worker] : membership.workers()) {
    if (worker.weight() > 0 && worker.evaluation_loss) losses.push_back(*worker.evaluation_loss);
  }
  if (losses.empty()) return std::nullopt;
  return Median(std::move(losses));
}

}  // namespace

std::string RoundManager::MakeHeader() {
  absl::MutexLock lock(&mu_);
  RoundOutcome outcome = round_->Outcome(membership_);
  outcome.epoch = epoch_;
  outcome.predecessor_hash = round_log_->HashBefore(head_);
  v1::RoundHeader header = MakeRoundHeader(run_->config, outcome);
  const bool needs_slots = head_.value() + 2 < run_->config.rounds();
  plan_.Give(needs_slots ? membership_.TakingPart() : std::vector<std::string>(), run_->config,
             &header);
  *header.mutable_committed_at() = ToProto(clock_->WallNow());
  *header.mutable_duration() = ToProto(clock_->MonotonicNow() - round_->opened_at());
  header.set_reason(by_deadline_ ? "deadline" : "complete");
  header.set_paused(paused_);
  DropReasonsUnlessFits(&header);
  return header.SerializeAsString();
}

absl::Status RoundManager::CommitRound() {
  const absl::Duration start = clock_->MonotonicNow();
  if (header_.empty()) header_ = MakeHeader();
  if (writer_ == nullptr) DISTRO_RETURN_IF_ERROR(StoreSegments());
  if (absl::Status status = writer_->Commit(header_); !status.ok()) {
    writer_ = nullptr;  // spent: a retry writes the same bytes to a new file
    if (!absl::IsInvalidArgument(status)) return status;
    // The same bytes would be refused again: no disk is at fault.
    return absl::InternalError(absl::StrCat("a round that cannot be stored: ", status.message()));
  }
  observer_->OnPhase("log", clock_->MonotonicNow() - start);
  v1::RoundHeader header;
  header.ParseFromString(header_);
  FinishRound(header);
  broadcast_.Commit(MakeCommitFrame(epoch_, RoundId(header.round()), header_));
  writer_ = nullptr;
  std::ranges::fill(results_, nullptr);
  header_.clear();
  return absl::OkStatus();
}

void RoundManager::FinishRound(const v1::RoundHeader& header) {
  absl::MutexLock lock(&mu_);
  const absl::Duration duration = clock_->MonotonicNow() - round_->opened_at();
  observer_->OnRoundCommitted(
      {.header = &header,
       .duration = duration,
       .by_deadline = by_deadline_,
       .result_bytes = ResultBytes(header),
       .tokens = IncludedTokens(header, round_->slots(), run_->config.sequence_length()),
       .loss = round_->MeanLoss(),
       .eval_loss = EvaluationLoss(membership_)});
  log_->Info("round committed",
             {{"round", header.round()},
              {"workers", absl::StrCat(round_->contributors(), "/", header.members_size())},
              {"bytes", ResultBytes(header)},
              {"seconds", absl::ToDoubleSeconds(duration)},
              {"reason", header.reason()}});
  NoteDiskSuccess();
  JudgeMembers(header);
  log_rate_.Add(ResultBytes(header), duration);
  update_times_.Close(clock_->MonotonicNow());
  plan_.Advance(header);
  head_ = head_.Next();
  round_.reset();
}

}  // namespace distro::server
