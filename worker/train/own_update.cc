#include "worker/train/own_update.h"

#include <algorithm>

namespace distro::worker {

void OwnUpdate::Make(const Gradient& gradient, uint64_t first_sample) {
  senders_.clear();
  loss_ = gradient.loss;
  local_steps_ = gradient.local_steps;
  first_sample_ = first_sample;
}

void OwnUpdate::AddSender() {
  if (std::ranges::find(senders_, incarnation_) == senders_.end()) senders_.push_back(incarnation_);
}

void OwnUpdate::Restore(const WorkerState& state) {
  senders_ = state.senders;
  loss_ = state.pending_loss;
  local_steps_ = static_cast<int>(state.pending_steps);
  first_sample_ = state.pending_samples;
}

void OwnUpdate::Save(WorkerState* state) const {
  state->senders = senders_;
  state->pending_loss = loss_;
  state->pending_steps = static_cast<uint32_t>(local_steps_);
  state->pending_samples = first_sample_;
}

bool OwnUpdate::IsSender(const CommittedRound& round, int member) const {
  if (member < 0) return false;
  const uint64_t incarnation = round.header->members(member).incarnation();
  return std::ranges::find(senders_, incarnation) != senders_.end();
}

bool OwnUpdate::Answer(RoundId round, uint64_t first_sample, bool abstains) {
  answered_ = round;
  answered_first_sample_ = first_sample;
  if (abstains) return false;
  sent_ = round;
  const bool first = last_sent_ != round;
  last_sent_ = round;
  return first;
}

void OwnUpdate::ForgetAnswers() {
  answered_.reset();
  sent_.reset();
}

std::optional<Exclusion> OwnUpdate::WhyExcluded(const CommittedRound& round, int member) const {
  if (sent_ != round.round()) return std::nullopt;
  if (member < 0) return Exclusion::kAbsent;
  const v1::Member& self = round.header->members(member);
  if (self.incarnation() != 0 && !IsSender(round, member)) return Exclusion::kOtherSender;
  if (self.weight() == 0) return Exclusion::kProbation;
  const bool whole = IncludedSegments(*round.header, member) == round.header->segments_size();
  return whole ? std::nullopt : std::optional(Exclusion::kLate);
}

std::optional<OwnPart> OwnUpdate::PartIn(const CommittedRound& round, int member,
                                         RoundId head) const {
  if (sent_ != round.round()) {
    // Records of before the join, and those without samples for it, say nothing.
    if (member < 0 || round.round() < head) return std::nullopt;
    return has_answered(round.round()) ? OwnPart::kNotFinite : OwnPart::kNotReady;
  }
  const std::optional<Exclusion> excluded = WhyExcluded(round, member);
  if (!excluded) return OwnPart::kCounted;
  switch (*excluded) {
    case Exclusion::kProbation:
      return OwnPart::kProbation;
    case Exclusion::kAbsent:
      return OwnPart::kAbsent;
    case Exclusion::kOtherSender:
      return OwnPart::kOtherSender;
    case Exclusion::kLate:
      break;
  }
  return IncludedSegments(*round.header, member) > 0 ? OwnPart::kCounted : OwnPart::kLate;
}

}  // namespace distro::worker
