#include "common/run/record/committed_round.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/bitmap.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/methods.h"
#include "common/run/record/round_checks.h"

namespace distro {
namespace {

// Takes the member's weight from `left`.
absl::Status CheckMember(const v1::Member& member, WeightLimit* left) {
  if (member.local_steps() > kMaxLocalSteps)
    return BadField("local_steps", absl::StrCat(member.local_steps(), " are more than 1000"));
  const uint64_t taken = member.weight() * left->a_weight;
  if (taken > left->sum) return BadField("weight", left->message);
  left->sum -= taken;
  if (!v1::MemberState_IsValid(member.state()) || member.state() == v1::MEMBER_STATE_UNSPECIFIED) {
    return BadField("state", absl::StrCat(member.state(), " is not known"));
  }
  return absl::OkStatus();
}

absl::Status CheckMembers(const v1::RoundHeader& header) {
  WeightLimit weights = MethodOf(header.step()).MemberWeights(header.step());
  absl::string_view last;
  for (const v1::Member& member : header.members()) {
    DISTRO_RETURN_IF_ERROR(ValidateName(member.name(), "members: name"));
    if (member.name() <= last) {
      return BadField("members", absl::StrCat(member.name(), " does not come after ", last));
    }
    last = member.name();
    DISTRO_RETURN_IF_ERROR(
        Annotate(CheckMember(member, &weights), absl::StrCat("members: ", member.name())));
  }
  return absl::OkStatus();
}

absl::Status CheckIncluded(const v1::RoundHeader& header, const std::string& included) {
  const int members = header.members_size();
  const size_t bytes = BitmapBytes(members);
  if (included.size() != bytes) {
    return BadField("included",
                    absl::StrCat(included.size(), " bytes for ", members, " members, not ", bytes));
  }
  for (int i = members; i < static_cast<int>(bytes) * 8; ++i) {
    if (BitOf(included, i)) return BadField("included", absl::StrCat("unused bit ", i, " is set"));
  }
  for (int i = 0; i < members; ++i) {
    if (!BitOf(included, i)) continue;
    const v1::Member& member = header.members(i);
    if (member.abstained()) return BadField("included", absl::StrCat(member.name(), " abstained"));
    if (member.weight() == 0)
      return BadField("included", absl::StrCat(member.name(), " has weight 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckSha256(const v1::RoundHeader& header, const std::string& sha256) {
  if (sha256.size() == sizeof(Sha256Digest)) return absl::OkStatus();
  if (sha256.empty() && header.segments(0).sha256().empty()) return absl::OkStatus();
  return BadField("sha256", absl::StrCat(sha256.size(), " bytes, expected 32, or none in all"));
}

absl::Status CheckSegments(const v1::RoundHeader& header, const Layout& layout) {
  const uint32_t segments = layout.segments();
  if (static_cast<uint32_t>(header.segments_size()) != segments) {
    return BadField("segments",
                    absl::StrCat(header.segments_size(), " for a layout of ", segments));
  }
  for (uint32_t i = 0; i < segments; ++i) {
    const std::string where = absl::StrCat("segment ", i);
    const v1::CommittedSegment& segment = header.segments(i);
    DISTRO_RETURN_IF_ERROR(Annotate(CheckIncluded(header, segment.included()), where));
    DISTRO_RETURN_IF_ERROR(
        Annotate(CheckPayloadBytes(layout, SegmentId(i), segment.payload_bytes()), where));
    DISTRO_RETURN_IF_ERROR(Annotate(CheckSha256(header, segment.sha256()), where));
  }
  return absl::OkStatus();
}

absl::Status CheckMedians(const v1::RoundHeader& header, const Layout& layout) {
  const size_t expected = MethodOf(header.step()).ScaleMedianCount(layout);
  if (static_cast<size_t>(header.scale_medians_size()) != expected) {
    return BadField("scale_medians",
                    absl::StrCat(header.scale_medians_size(), ", expected ", expected));
  }
  for (const uint32_t median : header.scale_medians()) {
    if (median > kLargestScaleMedian)
      return BadField("scale_medians", absl::StrCat(median, " is above ", kLargestScaleMedian));
  }
  return absl::OkStatus();
}

absl::Status CheckHeader(const v1::RoundHeader& header, const Layout& layout) {
  if (header.epoch() == 0) return BadField("epoch", "is 0");
  DISTRO_RETURN_IF_ERROR(CheckStepParameters(header.step(), layout));
  DISTRO_RETURN_IF_ERROR(CheckMembers(header));
  DISTRO_RETURN_IF_ERROR(CheckSegments(header, layout));
  DISTRO_RETURN_IF_ERROR(CheckMedians(header, layout));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckSlots(header.slots(), header.next_sample()), "slots"));
  return Annotate(CheckUnread(header.unread(), header.next_sample()), "unread");
}

}  // namespace

int CommittedRound::MemberIndex(absl::string_view name) const {
  const auto& members = header->members();
  const auto found = std::lower_bound(
      members.begin(), members.end(), name,
      [](const v1::Member& member, absl::string_view key) { return member.name() < key; });
  if (found == members.end() || found->name() != name) return -1;
  return static_cast<int>(found - members.begin());
}

bool CommittedRound::Included(int member, SegmentId segment) const {
  return BitOf(header->segments(segment.value()).included(), member);
}

int IncludedSegments(const v1::RoundHeader& header, int member) {
  return static_cast<int>(std::ranges::count_if(header.segments(), [member](const auto& segment) {
    return BitOf(segment.included(), member);
  }));
}

bool IsIncluded(const v1::RoundHeader& header, int member) {
  return std::ranges::any_of(header.segments(), [member](const auto& segment) {
    return BitOf(segment.included(), member);
  });
}

uint64_t ResultBytes(const v1::RoundHeader& header) {
  uint64_t bytes = 0;
  for (const v1::CommittedSegment& segment : header.segments()) bytes += segment.payload_bytes();
  return bytes;
}

absl::StatusOr<v1::RoundHeader> ParseRoundHeader(absl::string_view bytes, const Layout& layout) {
  v1::RoundHeader header;
  if (bytes.size() > kMaxRoundHeaderBytes ||
      !header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("round header: ", bytes.size(), " bytes are not a RoundHeader"));
  }
  if (absl::Status status = CheckHeader(header, layout); !status.ok()) {
    return Annotate(status, absl::StrCat("round ", header.round(), ": header"));
  }
  return header;
}

absl::StatusOr<CommittedRound> MakeCommittedRound(absl::string_view header_bytes,
                                                  std::vector<SharedBytes> payloads,
                                                  const Layout& layout) {
  DISTRO_ASSIGN_OR_RETURN(v1::RoundHeader header, ParseRoundHeader(header_bytes, layout));
  if (payloads.size() != layout.segments()) {
    return absl::InvalidArgumentError(absl::StrCat("round ", header.round(), ": ", payloads.size(),
                                                   " payloads for ", layout.segments(),
                                                   " segments"));
  }
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    const v1::CommittedSegment& listed = header.segments(i);
    const std::string where = absl::StrCat("round ", header.round(), ": segment ", i);
    if (payloads[i] == nullptr) return BadField(where, "the payload is missing");
    if (payloads[i]->size() != listed.payload_bytes()) {
      return BadField(where, absl::StrCat("the payload has ", payloads[i]->size(),
                                          " bytes, the header lists ", listed.payload_bytes()));
    }
    const uint64_t checksum = Xxh3(*payloads[i]);
    if (checksum != listed.checksum()) {
      return BadField(where, absl::StrCat("the payload's checksum is ", ToHex(checksum),
                                          ", the header lists ", ToHex(listed.checksum())));
    }
  }
  CommittedRound round;
  round.header = std::make_shared<const v1::RoundHeader>(std::move(header));
  round.hash = Xxh3(header_bytes);
  round.payloads = std::move(payloads);
  round.header_bytes = std::make_shared<const std::string>(header_bytes);
  return round;
}

}  // namespace distro
