// The membership state machine as one pure function (docs/protocol.md): JOINING -> ACTIVE <-> LATE -> LEFT.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "distro/v1/round.pb.h"

namespace distro::server {

enum class MemberEvent {
  kJoined,          // a process began a session, the first one of its name or a newer one
  kCaughtUp,        // a heartbeat: everything up to the head is applied, and its chain hash is ours
  kDiverged,        // a heartbeat: its chain hash is not ours
  kMissedDeadline,  // a segment closed without it
  kInTime,          // its whole update of a round arrived before the segments closed
  kLeft,            // it said so
  kLeaseOver,       // nothing was heard of it for the lease
};

struct MemberTransition {
  v1::MemberState state = v1::MEMBER_STATE_UNSPECIFIED;
  std::string reason;  // empty when nothing changes
};

// What `event` does to a worker in `state`; no state: the worker is not known. An event that means nothing in a state
// leaves it as it is, with an empty reason.
MemberTransition Transition(std::optional<v1::MemberState> state, MemberEvent event);

// "joining", "active", "late", "left": for logs, metrics and pages.
absl::string_view MemberStateName(v1::MemberState state);

}  // namespace distro::server
