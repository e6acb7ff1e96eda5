// The states that a worker can be in, in the order of its life. Whoever counts workers by state shows all of them.
#pragma once

#include "distro/v1/round.pb.h"

namespace distro::server {

inline constexpr v1::MemberState kMemberStates[] = {
    v1::MEMBER_STATE_JOINING, v1::MEMBER_STATE_SYNCED,     v1::MEMBER_STATE_PROBATION,
    v1::MEMBER_STATE_ACTIVE,  v1::MEMBER_STATE_LATE,       v1::MEMBER_STATE_SUSPECT,
    v1::MEMBER_STATE_LEFT,    v1::MEMBER_STATE_QUARANTINED};

}  // namespace distro::server
