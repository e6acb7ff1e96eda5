#include "tools/distroctl/log_show.h"

#include <bit>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "tools/distroctl/stored_log.h"

namespace distro::tools {
namespace {

std::string StateWord(v1::MemberState state) {
  const std::string name = v1::MemberState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "MEMBER_STATE_"));
}

std::string CommittedAt(const v1::RoundHeader& header) {
  const absl::Time time = absl::FromUnixSeconds(header.committed_at().seconds()) +
                          absl::Nanoseconds(header.committed_at().nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

double Seconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + 1e-9 * duration.nanos();
}

std::string StepText(const v1::StepParameters& step) {
  return absl::StrFormat("eta %g, eta*lambda %g, beta %g, clip %g, K %d",
                         std::bit_cast<float>(step.eta_bits()),
                         std::bit_cast<float>(step.eta_lambda_bits()), step.beta(),
                         step.clip_norm(), step.kept_per_block());
}

void AppendMembers(const v1::RoundHeader& header, std::string* text) {
  absl::StrAppendFormat(text, "\n%-32s %-11s %6s %8s %-16s %-16s  %s", "MEMBER", "STATE", "WEIGHT",
                        "SEGMENTS", "STATE HASH", "INCARNATION", "REASON");
  for (int i = 0; i < header.members_size(); ++i) {
    const v1::Member& member = header.members(i);
    absl::StrAppendFormat(text, "\n%-32s %-11s %6d %8d %-16s %-16s  %s%s", member.name(),
                          StateWord(member.state()), member.weight(), IncludedSegments(header, i),
                          member.has_state_hash() ? ToHex(member.state_hash()) : "-",
                          ToHex(member.incarnation()),
                          absl::Utf8SafeCHexEscape(member.state_reason()),
                          member.abstained() ? " (its step was not finite)" : "");
  }
}

void AppendSlots(const v1::RoundHeader& header, std::string* text) {
  absl::StrAppendFormat(text, "\nsamples of round %d, the next is %d", header.round() + 2,
                        header.next_sample());
  for (const v1::Slot& slot : header.slots()) {
    absl::StrAppendFormat(text, "\n%-32s %d to %d", slot.worker(), slot.first_sample(),
                          slot.first_sample() + slot.samples() - 1);
  }
}

}  // namespace

absl::StatusOr<std::string> ShowRound(const LogShowOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const StoredLog stored,
                          OpenStoredLog(options.data_dir, server::SnapshotCheck::kHead));
  const uint64_t end = stored.log->next_round().value();
  const uint64_t wanted = options.round.value_or(end == 0 ? 0 : end - 1);
  if (wanted >= end) {
    return absl::NotFoundError(
        absl::StrCat("round ", wanted, ": is not in the log, which has ", end, " rounds"));
  }
  const RoundId round(wanted);
  DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, stored.log->Header(round));
  std::string text = absl::StrFormat(
      "round       %d%s\nepoch       %d\ncommitted   %s, %.3f s after it opened\nreason      %s\n"
      "hash        %s\npredecessor %s\nresult      %d bytes in %d segments%s\nstep        %s",
      wanted, header.paused() ? " (the run was paused)" : "", header.epoch(), CommittedAt(header),
      Seconds(header.duration()), absl::Utf8SafeCHexEscape(header.reason()),
      ToHex(stored.log->HashBefore(round.Next())), ToHex(header.predecessor_hash()),
      PayloadBytes(header), header.segments_size(),
      round < stored.log->first_round() ? ", pruned" : "", StepText(header.step()));
  AppendMembers(header, &text);
  AppendSlots(header, &text);
  return text;
}

}  // namespace distro::tools
