#include "server/round/run_position.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/method/base/learning_rate.h"
#include "common/net/wire/proto_time.h"
#include "common/run/record/committed_round.h"
#include "common/run/record/header_bound.h"
#include "common/run/schedule.h"
#include "server/round/reference_state.h"

namespace distro::server {
namespace {

constexpr uint64_t kRestoredRounds = kReferenceRounds;  // records that a start looks at; at least 2

// The workers with samples of round 0 as members, before there is a record.
std::vector<v1::Member> MembersOf(const std::vector<v1::Slot>& slots) {
  std::vector<v1::Member> members;
  for (const v1::Slot& slot : slots) {
    v1::Member& member = members.emplace_back();
    member.set_name(slot.worker());
    member.set_state(v1::MEMBER_STATE_ACTIVE);
    member.set_weight(1);
  }
  return members;
}

}  // namespace

absl::StatusOr<std::vector<v1::Member>> RunPosition::Restore(
    const RoundLog& round_log, absl::FunctionRef<void(const v1::RoundHeader&)> learn) {
  plan_ = PlanOf(round_log.start());
  std::vector<v1::Member> members = MembersOf(plan_.slots);
  // Record r has the slots of r + 2: those of head and head + 1 are in the last two records.
  const uint64_t head = head_.value();
  const uint64_t most = head < kRestoredRounds ? 0 : head - kRestoredRounds;
  for (uint64_t r = std::max(most, round_log.begin().value()); r < head; ++r) {
    DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, round_log.Header(RoundId(r)));
    learn(header);
    Advance(header);
    members = {header.members().begin(), header.members().end()};
  }
  for (std::vector<v1::Slot>* slots : {&plan_.slots, &plan_.next_slots}) {
    // As many as fit into a header; the samples of the others are assigned again.
    for (; slots->size() > max_workers_; slots->pop_back())
      plan_.pool.GiveBack(slots->back(), /*read=*/0);
  }
  return members;
}

void RunPosition::Open(const Membership& members, absl::Duration deadline, SegmentId audited,
                       absl::Duration now) {
  round_.emplace(head_, run_->layout->segments(), plan_.slots, now, audited,
                 run_->method->Step(head_, medians_, extension_ ? &*extension_ : nullptr),
                 WeighingOf(run_->config));
  round_->SetExpected(members);
  deadline_ = deadline;
  opened_before_ = true;
  by_deadline_ = false;
}

std::vector<std::string> RunPosition::CountedWithoutSamples(const Membership& members) const {
  std::vector<std::string> names;
  for (const auto& [name, worker] : members.workers()) {
    if (worker.weight() > 0 && !round_->HasSlot(name)) names.push_back(name);
  }
  const size_t room = max_workers_ - std::min<size_t>(max_workers_, round_->slots().size());
  if (names.size() > room) names.resize(room);
  return names;
}

size_t RunPosition::Reopen(const Membership& members) {
  const std::vector<std::string> names = CountedWithoutSamples(members);
  round_->AddSlots(AssignSlots(names, head_.value(), SamplesOfRound(run_->config), &plan_.pool));
  round_->SetExpected(members);
  return names.size();
}

v1::RoundOpen RunPosition::MakeOpen(absl::Duration now) const {
  v1::RoundOpen open;
  *open.mutable_step() = round_->step();
  if (deadline_ != absl::InfiniteDuration())
    *open.mutable_deadline() = ToProto(std::max(deadline_at() - now, absl::ZeroDuration()));
  if (run_->config.has_round_window()) {
    const absl::Duration ends = round_->opened_at() + FromProto(run_->config.round_window());
    *open.mutable_window() = ToProto(std::max(ends - now, absl::ZeroDuration()));
  }
  for (const v1::Slot& slot : round_->slots()) *open.add_slots() = slot;
  for (const v1::Slot& slot : plan_.next_slots) *open.add_next_slots() = slot;
  return open;
}

absl::Status RunPosition::CheckHead(RoundId round) const {
  if (round == head_) return absl::OkStatus();
  const bool late = round < head_;
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, late ? "late" : "wrong_round",
      absl::StrCat("round ", round.value(), late ? ": is over: round " : ": has not begun: round ",
                   head_.value(), " is next"));
}

v1::RoundHeader RunPosition::MakeHeader(const Membership& members, uint64_t predecessor_hash,
                                        bool paused, const Clock& clock) {
  RoundOutcome outcome = round_->Outcome(members, *run_->method, medians_);
  outcome.epoch = epoch_;
  outcome.predecessor_hash = predecessor_hash;
  v1::RoundHeader header = MakeRoundHeader(outcome);
  plan_.Give(gives_samples() ? members.TakingPart() : std::vector<std::string>(), run_->config,
             round_->slots(), &header);
  *header.mutable_committed_at() = ToProto(clock.WallNow());
  *header.mutable_duration() = ToProto(clock.MonotonicNow() - round_->opened_at());
  header.set_reason(by_deadline_ ? "deadline" : "complete");
  header.set_paused(paused);
  if (extension_) *header.mutable_extension() = *extension_;
  DropReasonsUnlessFits(&header);
  return header;
}

CommittedRoundInfo RunPosition::Describe(const v1::RoundHeader& header, absl::Duration now) const {
  return {.header = &header,
          .duration = now - round_->opened_at(),
          .by_deadline = by_deadline_,
          .result_bytes = ResultBytes(header),
          .tokens = IncludedTokens(header, round_->slots(), run_->config),
          .loss = round_->MeanLoss()};
}

void RunPosition::Advance(const v1::RoundHeader& header) {
  plan_.Advance(header);
  medians_ = {header.scale_medians().begin(), header.scale_medians().end()};
  if (header.has_extension()) Extend(header.extension());
}

v1::Extension RunPosition::ExtensionTo(uint64_t rounds) const {
  const RoundId from = round_ ? head_.Next() : head_;
  return ExtendSchedule(run_->config, extension_ ? &*extension_ : nullptr, from, rounds);
}

void RunPosition::Extend(const v1::Extension& extension) {
  if (extension.rounds() > rounds()) extension_ = extension;
}

void RunPosition::Finish(const v1::RoundHeader& header) {
  Advance(header);
  head_ = head_.Next();
  round_.reset();
}

}  // namespace distro::server
