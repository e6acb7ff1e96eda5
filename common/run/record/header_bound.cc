#include "common/run/record/header_bound.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/bitmap.h"
#include "common/base/checksum.h"
#include "common/method/base/key_checks.h"
#include "common/method/methods.h"
#include "common/run/record/committed_round.h"
#include "google/protobuf/io/coded_stream.h"

namespace distro {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
constexpr size_t kMaxNameBytes = 63;  // ValidateName
constexpr uint64_t kMostRounds = uint64_t{1} << 32;

// Bytes of an element of a repeated field: tag, length, message. Every field number of a header is
// below 16.
uint64_t InList(const google::protobuf::MessageLite& message) {
  const auto bytes = static_cast<uint32_t>(message.ByteSizeLong());
  return 1 + google::protobuf::io::CodedOutputStream::VarintSize32(bytes) + uint64_t{bytes};
}

uint64_t LargestMember() {
  v1::Member member;
  member.set_name(std::string(kMaxNameBytes, 'z'));
  member.set_incarnation(kMost);
  member.set_weight(kMaxWorkers);
  member.set_state(v1::MEMBER_STATE_QUARANTINED);
  member.set_abstained(true);
  member.set_state_hash(kMost);
  member.set_probation_left(std::numeric_limits<uint32_t>::max());
  member.set_local_steps(kMaxLocalSteps);
  return InList(member);
}

uint64_t LargestSlot() {
  v1::Slot slot;
  slot.set_worker(std::string(kMaxNameBytes, 'z'));
  slot.set_first_sample(kMost);
  slot.set_samples(std::numeric_limits<uint32_t>::max());
  return InList(slot);
}

uint64_t LargestRange() {
  v1::SampleRange range;
  range.set_first_sample(kMost);
  range.set_samples(kMost);
  return InList(range);
}

uint64_t LargestSegment(uint32_t members) {
  v1::CommittedSegment segment;
  segment.set_included(std::string(BitmapBytes(members), '\xff'));
  segment.set_payload_bytes(kMost);
  segment.set_checksum(kMost);
  segment.set_sha256(std::string(sizeof(Sha256Digest), '\xff'));
  return InList(segment);
}

// Bytes of the fields that are not repeated.
uint64_t LargestRest() {
  v1::RoundHeader header;
  header.set_round(kMost);
  header.set_epoch(kMost);
  v1::StepParameters* const step = header.mutable_step();
  step->set_eta_bits(1);
  step->set_eta_lambda_bits(1);
  step->set_beta(1);
  step->set_clip_norm(1);
  step->set_kept_per_block(kMaxWorkers);
  header.set_next_sample(kMost);
  header.set_predecessor_hash(kMost);
  header.mutable_committed_at()->set_seconds(-1);
  header.mutable_committed_at()->set_nanos(-1);
  header.mutable_duration()->set_seconds(-1);
  header.mutable_duration()->set_nanos(-1);
  header.set_reason("complete");
  header.set_paused(true);
  v1::Extension* const extension = header.mutable_extension();
  extension->set_rounds(kMostRounds);
  extension->set_from_round(kMostRounds);
  extension->set_from_rate(1);
  return header.ByteSizeLong();
}

}  // namespace

HeaderShape HeaderShapeOf(const v1::RunConfig& config, const Layout& layout) {
  return {.segments = layout.segments(),
          .method_bytes = MethodOf(config).HeaderBytes(config, layout),
          .ranges = 3 * (config.has_round_window() ? uint64_t{config.local_steps()} : 1) - 1};
}

uint64_t LargestHeaderBytes(uint32_t members, const HeaderShape& shape) {
  constexpr uint64_t kLongerLengths = 2 * 4;  // of a member and of a slot, with ranges in them
  const uint64_t a_member =
      LargestMember() + LargestSlot() + kLongerLengths + shape.ranges * LargestRange();
  return LargestRest() + shape.method_bytes + members * a_member +
         shape.segments * LargestSegment(members);
}

uint32_t MostMembers(const HeaderShape& shape) {
  uint32_t fits = 0;
  uint32_t above = kMaxWorkers + 1;
  while (above - fits > 1) {
    const uint32_t middle = fits + (above - fits) / 2;
    (LargestHeaderBytes(middle, shape) <= kMaxRoundHeaderBytes ? fits : above) = middle;
  }
  return fits;
}

absl::Status CheckHeaderBound(const v1::RunConfig& config, const HeaderShape& shape) {
  const uint32_t most = MostMembers(shape);
  if (config.max_workers() <= most) return absl::OkStatus();
  const absl::string_view other =
      config.has_round_window() ? "lower local_steps" : "raise segment_blocks";
  const std::string remedy = most == 0
                                 ? std::string(other)
                                 : absl::StrCat("set max_workers to at most ", most, " or ", other);
  return absl::InvalidArgumentError(absl::StrCat(
      "max_workers: the header of a round of ", config.max_workers(), " workers in ",
      shape.segments, " segments, with ", shape.ranges + 1, " ranges of samples a worker, takes ",
      LargestHeaderBytes(config.max_workers(), shape), " bytes of ", kMaxRoundHeaderBytes, ": ",
      remedy));
}

void DropReasonsUnlessFits(v1::RoundHeader* header) {
  if (header->ByteSizeLong() <= kMaxRoundHeaderBytes) return;
  for (v1::Member& member : *header->mutable_members()) member.clear_state_reason();
}

}  // namespace distro
