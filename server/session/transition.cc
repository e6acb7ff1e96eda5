#include "server/session/transition.h"

namespace distro::server {
namespace {

bool TakesPart(v1::MemberState state) {
  return state == v1::MEMBER_STATE_ACTIVE || state == v1::MEMBER_STATE_LATE;
}

}  // namespace

MemberTransition Transition(std::optional<v1::MemberState> state, MemberEvent event) {
  const v1::MemberState now = state.value_or(v1::MEMBER_STATE_LEFT);
  if (event == MemberEvent::kJoined) {
    return {v1::MEMBER_STATE_JOINING, "joined: downloads the snapshot and the log"};
  }
  if (now == v1::MEMBER_STATE_LEFT) return {now, ""};
  switch (event) {
    case MemberEvent::kJoined:
      break;
    case MemberEvent::kCaughtUp:
      if (now == v1::MEMBER_STATE_JOINING)
        return {v1::MEMBER_STATE_ACTIVE, "has applied everything"};
      break;
    case MemberEvent::kDiverged:
      return {v1::MEMBER_STATE_JOINING, "diverged: its chain hash is not that of the log"};
    case MemberEvent::kMissedDeadline:
      if (now == v1::MEMBER_STATE_ACTIVE) return {v1::MEMBER_STATE_LATE, "missed the deadline"};
      break;
    case MemberEvent::kInTime:
      if (now == v1::MEMBER_STATE_LATE) return {v1::MEMBER_STATE_ACTIVE, "in time again"};
      break;
    case MemberEvent::kLeft:
      return {v1::MEMBER_STATE_LEFT, "left"};
    case MemberEvent::kLeaseOver:
      return {v1::MEMBER_STATE_LEFT,
              TakesPart(now) ? "lease over: no heartbeat" : "lease over while joining"};
  }
  return {now, ""};
}

absl::string_view MemberStateName(v1::MemberState state) {
  switch (state) {
    case v1::MEMBER_STATE_JOINING:
      return "joining";
    case v1::MEMBER_STATE_ACTIVE:
      return "active";
    case v1::MEMBER_STATE_LATE:
      return "late";
    case v1::MEMBER_STATE_LEFT:
      return "left";
    default:
      return "unknown";
  }
}

}  // namespace distro::server
