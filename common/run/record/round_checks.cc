#include "common/run/record/round_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/methods.h"

namespace distro {
namespace {

constexpr uint64_t kMostSamplesOfSlot = std::numeric_limits<uint32_t>::max();

absl::Status CheckRange(uint64_t first, uint64_t samples, uint64_t next_sample) {
  if (samples >= 1 && first <= next_sample && samples <= next_sample - first)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(samples, " samples from ", first, " on are none or pass ", next_sample));
}

}  // namespace

absl::Status CheckStepParameters(const v1::StepParameters& step, const Layout& layout) {
  DISTRO_RETURN_IF_ERROR(MethodOf(step).CheckStep(step, layout));
  if (!(step.clip_norm() > 0) || !std::isfinite(step.clip_norm())) {
    return BadField("step: clip_norm",
                    absl::StrCat(step.clip_norm(), " is not above 0 and finite"));
  }
  if (step.kept_per_block() < 1 || step.kept_per_block() > 4096) {
    return BadField("step: kept_per_block",
                    absl::StrCat(step.kept_per_block(), " is outside 1 to 4096"));
  }
  return absl::OkStatus();
}

absl::Status CheckSlots(const google::protobuf::RepeatedPtrField<v1::Slot>& slots,
                        uint64_t next_sample) {
  absl::string_view last;
  for (const v1::Slot& slot : slots) {
    DISTRO_RETURN_IF_ERROR(ValidateName(slot.worker(), "worker"));
    if (slot.worker() <= last) {
      return BadField("worker", absl::StrCat(slot.worker(), " does not come after ", last));
    }
    last = slot.worker();
    uint64_t all = slot.samples();
    absl::Status status = CheckRange(slot.first_sample(), slot.samples(), next_sample);
    for (const v1::SampleRange& more : slot.more()) {
      status.Update(CheckRange(more.first_sample(), more.samples(), next_sample));
      if (more.samples() > kMostSamplesOfSlot - all)
        status.Update(absl::InvalidArgumentError("more than 2^32 - 1 samples"));
      if (!status.ok()) break;
      all += more.samples();
    }
    if (!status.ok()) return Annotate(status, slot.worker());
  }
  return absl::OkStatus();
}

absl::Status CheckUnread(const google::protobuf::RepeatedPtrField<v1::SampleRange>& unread,
                         uint64_t next_sample) {
  uint64_t least = 0;  // that the next range may begin at
  for (const v1::SampleRange& range : unread) {
    if (range.first_sample() < least)
      return absl::InvalidArgumentError(absl::StrCat(range.first_sample(), " is not after ", least,
                                                     ", or joins the range before"));
    DISTRO_RETURN_IF_ERROR(CheckRange(range.first_sample(), range.samples(), next_sample));
    least = range.first_sample() + range.samples();
    if (least < UINT64_MAX) ++least;
  }
  return absl::OkStatus();
}

uint64_t MaxPayloadBytes(const Layout& layout, SegmentId segment) {
  const auto blocks = static_cast<uint64_t>(layout.SegmentBlocks(segment));
  uint64_t most = 0;
  for (const Method* method : AllMethods()) most = std::max(most, method->MaxResultBytes(blocks));
  return most;
}

absl::Status CheckPayloadBytes(const Layout& layout, SegmentId segment, uint64_t payload_bytes) {
  const uint64_t most = MaxPayloadBytes(layout, segment);
  if (payload_bytes >= 1 && payload_bytes <= most) return absl::OkStatus();
  return BadField("payload_bytes", absl::StrCat(payload_bytes, " is outside 1 to ", most));
}

}  // namespace distro
