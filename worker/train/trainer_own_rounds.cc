// Trainer: what became of this worker's part in a committed round.
#include "common/run/record/committed_round.h"
#include "worker/train/trainer.h"

namespace distro::worker {

std::optional<Exclusion> Trainer::WhyExcluded(const CommittedRound& round, int member) const {
  if (member < 0) return Exclusion::kAbsent;
  const v1::Member& self = round.header->members(member);
  if (self.incarnation() != 0 && !IsSender(round, member)) return Exclusion::kOtherSender;
  if (self.weight() == 0) return Exclusion::kProbation;
  const bool whole = IncludedSegments(*round.header, member) == round.header->segments_size();
  return whole ? std::nullopt : std::optional(Exclusion::kLate);
}

std::optional<OwnPart> Trainer::PartIn(const CommittedRound& round, int member,
                                       std::optional<Exclusion> excluded) const {
  if (sent_round_ != round.round()) {
    // Records of before the join, and those without samples for it, say nothing.
    if (member < 0 || round.round().value() < deps_.run->head_round()) return std::nullopt;
    return uploaded_round_ == round.round() ? OwnPart::kNotFinite : OwnPart::kNotReady;
  }
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

void Trainer::CountOwnUpdate(const CommittedRound& round, int member) {
  ++summary_.rounds_applied;
  std::optional<Exclusion> excluded;
  if (sent_round_ == round.round()) excluded = WhyExcluded(round, member);
  if (excluded) {
    ++summary_.updates_excluded;
    ++summary_.excluded[static_cast<int>(*excluded)];
  }
  if (const auto part = PartIn(round, member, excluded)) TellOwnPart(*part);
}

void Trainer::TellOwnPart(OwnPart part) {
  const bool told = own_rounds_.uncounted_in_a_row() >= OwnRounds::kTold;
  if (own_rounds_.Add(part)) {
    deps_.log->Warning("this worker's work does not count",
                       {{"rounds_in_a_row", own_rounds_.uncounted_in_a_row()},
                        {"reason", own_rounds_.What()},
                        {"remedy", own_rounds_.Remedy()}});
  } else if (told && part == OwnPart::kCounted) {
    deps_.log->Info("this worker's work counts again");
  }
  summary_.uncounted_in_a_row = own_rounds_.uncounted_in_a_row();
  summary_.uncounted = own_rounds_.What();
}

}  // namespace distro::worker
