#include "server/session/transition.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

constexpr auto kJoining = v1::MEMBER_STATE_JOINING;
constexpr auto kActive = v1::MEMBER_STATE_ACTIVE;
constexpr auto kLate = v1::MEMBER_STATE_LATE;
constexpr auto kLeft = v1::MEMBER_STATE_LEFT;

struct Row {
  std::optional<v1::MemberState> from;
  MemberEvent event;
  v1::MemberState to;
  bool changes;  // with a reason
};

const Row kTable[] = {
    {std::nullopt, MemberEvent::kJoined, kJoining, true},
    {kJoining, MemberEvent::kJoined, kJoining, true},
    {kActive, MemberEvent::kJoined, kJoining, true},
    {kLate, MemberEvent::kJoined, kJoining, true},
    {kLeft, MemberEvent::kJoined, kJoining, true},

    {kJoining, MemberEvent::kCaughtUp, kActive, true},
    {kActive, MemberEvent::kCaughtUp, kActive, false},
    {kLate, MemberEvent::kCaughtUp, kLate, false},
    {kLeft, MemberEvent::kCaughtUp, kLeft, false},

    {kJoining, MemberEvent::kDiverged, kJoining, true},
    {kActive, MemberEvent::kDiverged, kJoining, true},
    {kLate, MemberEvent::kDiverged, kJoining, true},
    {kLeft, MemberEvent::kDiverged, kLeft, false},

    {kJoining, MemberEvent::kMissedDeadline, kJoining, false},
    {kActive, MemberEvent::kMissedDeadline, kLate, true},
    {kLate, MemberEvent::kMissedDeadline, kLate, false},
    {kLeft, MemberEvent::kMissedDeadline, kLeft, false},

    {kJoining, MemberEvent::kInTime, kJoining, false},
    {kActive, MemberEvent::kInTime, kActive, false},
    {kLate, MemberEvent::kInTime, kActive, true},
    {kLeft, MemberEvent::kInTime, kLeft, false},

    {kJoining, MemberEvent::kLeft, kLeft, true},
    {kActive, MemberEvent::kLeft, kLeft, true},
    {kLate, MemberEvent::kLeft, kLeft, true},
    {kLeft, MemberEvent::kLeft, kLeft, false},

    {kJoining, MemberEvent::kLeaseOver, kLeft, true},
    {kActive, MemberEvent::kLeaseOver, kLeft, true},
    {kLate, MemberEvent::kLeaseOver, kLeft, true},
    {kLeft, MemberEvent::kLeaseOver, kLeft, false},
    {std::nullopt, MemberEvent::kLeaseOver, kLeft, false},
};

TEST(TransitionTest, FollowsTheTable) {
  for (size_t i = 0; i < std::size(kTable); ++i) {
    const Row& row = kTable[i];
    const MemberTransition got = Transition(row.from, row.event);
    EXPECT_EQ(got.state, row.to) << "row " << i;
    EXPECT_EQ(!got.reason.empty(), row.changes) << "row " << i << ": " << got.reason;
  }
}

}  // namespace
}  // namespace distro::server
