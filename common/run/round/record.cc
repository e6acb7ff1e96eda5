#include "common/run/round/record.h"

#include <algorithm>
#include <utility>

#include "common/base/bitmap.h"
#include "common/method/methods.h"
#include "common/run/record/committed_round.h"
#include "common/run/schedule.h"

namespace distro {
namespace {

std::vector<v1::Slot> ToVector(const google::protobuf::RepeatedPtrField<v1::Slot>& slots) {
  return {slots.begin(), slots.end()};
}

// Bit i: members[i] is included in the segment.
std::string Bitmap(const std::vector<RecordedMember>& members, size_t segment) {
  std::vector<bool> bits;
  for (const RecordedMember& member : members)
    bits.push_back(segment < member.included.size() && member.included[segment]);
  return ToBitmap(bits);
}

}  // namespace

void SlotPlan::Give(absl::Span<const std::string> workers, const v1::RunConfig& config,
                    absl::Span<const v1::Slot> round_slots, v1::RoundHeader* header) const {
  SamplePool left = pool;
  const bool comes_back = MethodOf(header->step()).binds_updates_to_slots();
  for (int i = 0; comes_back && i < header->members_size(); ++i) {
    const v1::Slot& slot = round_slots[i];
    left.GiveBack(slot, ReadSamples(*header, i, slot, config.samples_per_worker()));
  }
  for (v1::Slot& slot : AssignSlots(workers, header->round(), SamplesOfRound(config), &left))
    *header->add_slots() = std::move(slot);
  header->set_next_sample(left.next_sample());
  *header->mutable_unread() = left.Unread();
}

void SlotPlan::Advance(const v1::RoundHeader& header) {
  slots = std::exchange(next_slots, ToVector(header.slots()));
  pool = SamplePool(header.unread(), header.next_sample());
}

SlotPlan PlanOf(const v1::StartHeader& start) {
  return {.slots = ToVector(start.slots()),
          .next_slots = ToVector(start.next_slots()),
          .pool = SamplePool({}, start.next_sample())};
}

v1::StartHeader MakeStartHeader(const RunStart& start, const Layout& layout,
                                const v1::RunConfig& config,
                                absl::Span<const std::string> workers) {
  v1::StartHeader header;
  const Sha256Digest& manifest = layout.manifest().hash();
  header.set_run_id(start.run_id);
  header.set_manifest_hash(manifest.data(), manifest.size());
  header.set_state_hash(start.state_hash);
  header.set_data_fingerprint(start.data_fingerprint);
  SamplePool pool;
  for (v1::Slot& slot : AssignSlots(workers, 0, SamplesOfRound(config), &pool))
    *header.add_slots() = std::move(slot);
  if (config.rounds() > 1) {
    for (v1::Slot& slot : AssignSlots(workers, 1, SamplesOfRound(config), &pool))
      *header.add_next_slots() = std::move(slot);
  }
  header.set_next_sample(pool.next_sample());
  return header;
}

v1::RoundHeader MakeRoundHeader(const RoundOutcome& outcome) {
  v1::RoundHeader header;
  header.set_round(outcome.round.value());
  header.set_epoch(outcome.epoch.value());
  *header.mutable_step() = outcome.step;
  for (const RecordedMember& recorded : outcome.members) *header.add_members() = recorded.member;
  for (size_t s = 0; s < outcome.segments.size(); ++s) {
    v1::CommittedSegment* segment = header.add_segments();
    segment->set_included(Bitmap(outcome.members, s));
    segment->set_payload_bytes(outcome.segments[s].payload_bytes);
    segment->set_checksum(outcome.segments[s].checksum);
    const Sha256Digest& sha256 = outcome.segments[s].sha256;
    segment->set_sha256(sha256.data(), sha256.size());
  }
  header.set_predecessor_hash(outcome.predecessor_hash);
  header.mutable_scale_medians()->Add(outcome.scale_medians.begin(), outcome.scale_medians.end());
  return header;
}

uint64_t ReadSamples(const v1::RoundHeader& header, int member, const v1::Slot& slot,
                     uint32_t samples_a_step) {
  if (!IsIncluded(header, member)) return 0;
  const uint64_t steps = header.members(member).local_steps();
  const uint64_t all = SamplesOf(slot);
  return steps == 0 ? all : std::min(all, steps * samples_a_step);
}

uint64_t IncludedTokens(const v1::RoundHeader& header, absl::Span<const v1::Slot> slots,
                        const v1::RunConfig& config) {
  uint64_t samples = 0;
  for (int i = 0; i < header.members_size(); ++i)
    samples += ReadSamples(header, i, slots[i], config.samples_per_worker());
  return samples * config.sequence_length();
}

}  // namespace distro
