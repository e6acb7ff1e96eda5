#include "tests/testing/round_builder.h"

#include <bit>
#include <utility>

#include "common/base/bitmap.h"
#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/step.h"
#include "common/method/signs/payload.h"
#include "common/net/wire/frames.h"

namespace distro::testing {
namespace {

void SetStep(v1::StepParameters* step) {
  step->set_eta_bits(std::bit_cast<uint32_t>(0.25f));
  step->set_eta_lambda_bits(std::bit_cast<uint32_t>(0.0625f));
  step->set_beta(0.9f);
  step->set_clip_norm(1);
  step->set_kept_per_block(4);
}

void AddMember(v1::RoundHeader* header, const std::string& name) {
  v1::Member* member = header->add_members();
  member->set_name(name);
  member->set_incarnation(Xxh3(name) | 1);
  member->set_weight(1);
  member->set_state(v1::MEMBER_STATE_ACTIVE);
  v1::Slot* slot = header->add_slots();
  slot->set_worker(name);
  slot->set_first_sample(header->next_sample());
  slot->set_samples(8);
  header->set_next_sample(header->next_sample() + 8);
}

void SetDeltas(size_t tensors, v1::StepParameters* step) {
  step->set_clip_norm(1);
  step->set_kept_per_block(4);
  v1::DeltaParameters* const deltas = step->mutable_deltas();
  deltas->add_inner_rate_bits(std::bit_cast<uint32_t>(0.25f));
  deltas->set_outer_rate_bits(std::bit_cast<uint32_t>(0.5f));
  deltas->set_error_decay(0.5f);
  deltas->set_caps(std::string(tensors, static_cast<char>(200)));
  std::vector<bool> as_dct(tensors);
  as_dct[0] = true;
  deltas->set_as_dct(ToBitmap(as_dct));
}

DeltaResult TwoEntriesEach(int64_t blocks) {
  DeltaResult result;
  for (int64_t block = 0; block < blocks; ++block) {
    for (const int position : {0, 1}) {
      result.positions.push_back(static_cast<uint16_t>(position));
      result.signs.push_back(position == 0 ? 1 : -1);
      result.levels.push_back(static_cast<uint8_t>(position));
    }
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
    result.codes.push_back(static_cast<uint8_t>(190 + block));
  }
  return result;
}

// Header and members, without step and segments.
BuiltRound StartRound(RoundId round, uint64_t predecessor_hash, EpochId epoch) {
  BuiltRound built;
  built.header.set_round(round.value());
  built.header.set_epoch(epoch.value());
  built.header.set_next_sample(16 * (round.value() + 2));
  built.header.set_predecessor_hash(predecessor_hash);
  for (const char* name : {"alice", "bob"}) AddMember(&built.header, name);
  return built;
}

// Everybody is included.
void AddSegment(std::string payload, BuiltRound* built) {
  v1::CommittedSegment* segment = built->header.add_segments();
  segment->set_included(std::string(1, '\x03'));
  segment->set_payload_bytes(payload.size());
  segment->set_checksum(Xxh3(payload));
  const Sha256Digest sha256 = Sha256(payload);
  segment->set_sha256(sha256.data(), sha256.size());
  built->payloads.push_back(std::move(payload));
}

v1::SubscribeRoundsResponse Frame(const BuiltRound& round, EpochId epoch) {
  v1::SubscribeRoundsResponse frame;
  frame.set_epoch(epoch.value());
  frame.set_round(round.header.round());
  return frame;
}

}  // namespace

Layout SmallLayout() {
  return *Layout::Create(*Manifest::Create({{"a", {100, 70}}, {"b", {130}}, {"c", {64, 64}}}), 2);
}

Votes SomeVotes(int64_t blocks, uint64_t seed) {
  Votes votes;
  for (int64_t block = 0; block < blocks; ++block) {
    int position = 0;
    for (int i = 0; i < 5; ++i) {
      const uint64_t word = SplitMix64(seed, block * 5 + i);
      position += 1 + static_cast<int>(word % 800);
      votes.positions.push_back(static_cast<uint16_t>(position));
      votes.values.push_back((word >> 40) & 1 ? 2 : -1);
    }
    votes.offsets.push_back(static_cast<uint32_t>(votes.positions.size()));
  }
  return votes;
}

BuiltRound BuildRound(const Layout& layout, RoundId round, uint64_t predecessor_hash,
                      EpochId epoch) {
  BuiltRound built = StartRound(round, predecessor_hash, epoch);
  SetStep(built.header.mutable_step());
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    const Votes votes = SomeVotes(layout.SegmentBlocks(SegmentId(i)), 1000 * round.value() + i);
    AddSegment(EncodeVotes(IdentifyPayload(layout, round, SegmentId(i)), votes), &built);
  }
  return built;
}

BuiltRound BuildDeltaRound(const Layout& layout, RoundId round, uint64_t predecessor_hash,
                           EpochId epoch) {
  BuiltRound built = StartRound(round, predecessor_hash, epoch);
  const size_t tensors = layout.tensors().size();
  SetDeltas(tensors, built.header.mutable_step());
  for (size_t i = 0; i < tensors; ++i) built.header.add_scale_medians(i == 0 ? 0 : 151);
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    const SegmentId segment(i);
    const DeltaResult result = TwoEntriesEach(layout.SegmentBlocks(segment));
    AddSegment(EncodeDeltaResult(IdentifyPayload(layout, round, segment), result), &built);
  }
  return built;
}

CommittedRound Committed(const Layout& layout, const BuiltRound& round) {
  std::vector<SharedBytes> payloads;
  for (const std::string& payload : round.payloads) {
    payloads.push_back(std::make_shared<const std::string>(payload));
  }
  return MakeCommittedRound(round.header_bytes(), std::move(payloads), layout).value();
}

v1::SegmentFrame MakeSegmentFrame(SegmentId segment, uint64_t offset, uint64_t payload_bytes,
                                  absl::string_view data) {
  v1::SegmentFrame frame;
  frame.set_segment(segment.value());
  frame.set_offset(offset);
  frame.set_payload_bytes(payload_bytes);
  frame.set_data(std::string(data));
  return frame;
}

std::vector<v1::SubscribeRoundsResponse> Frames(const BuiltRound& round, EpochId epoch) {
  std::vector<v1::SubscribeRoundsResponse> frames;
  for (uint32_t i = 0; i < round.payloads.size(); ++i) {
    const absl::string_view payload = round.payloads[i];
    for (uint64_t offset = 0; offset < payload.size();) {
      const uint64_t bytes = FrameBytes(offset, payload.size());
      frames.push_back(Frame(round, epoch));
      *frames.back().mutable_segment() =
          MakeSegmentFrame(SegmentId(i), offset, payload.size(), payload.substr(offset, bytes));
      offset += bytes;
    }
  }
  frames.push_back(Frame(round, epoch));
  frames.back().mutable_commit()->set_header(round.header_bytes());
  return frames;
}

}  // namespace distro::testing
