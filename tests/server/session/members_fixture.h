// A Membership, and the calls that workers make to it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/session/membership.h"

namespace distro::server {

inline v1::WorkerIdentity Identity(const std::string& name, uint64_t incarnation) {
  v1::WorkerIdentity identity;
  identity.set_name(name);
  identity.set_incarnation(incarnation);
  return identity;
}

class MembersFixture : public ::testing::Test {
 protected:
  explicit MembersFixture(const MembershipOptions& options)
      : members_(options, &log_, [this](const Worker& worker, absl::string_view word) {
          changes_.push_back(absl::StrCat(worker.name, ": ", word));
          last_reason_ = worker.reason;
        }) {}

  HeartbeatAnswer Answer(const std::string& name, uint64_t incarnation, uint64_t sequence,
                         Progress progress, absl::Duration now = absl::Seconds(1)) {
    v1::HeartbeatRequest request;
    *request.mutable_worker() = Identity(name, incarnation);
    request.set_sequence(sequence);
    request.set_next_round(sequence);
    return members_.Heartbeat(request, progress, now);
  }
  v1::Directive Beat(const std::string& name, uint64_t incarnation, uint64_t sequence,
                     Progress progress, absl::Duration now = absl::Seconds(1)) {
    return Answer(name, incarnation, sequence, progress, now).directive;
  }
  absl::Status Join(const std::string& name, uint64_t incarnation = 1,
                    absl::Duration now = absl::Seconds(0)) {
    return members_.Join(Identity(name, incarnation), "data", now);
  }
  // Joins and reports that it has applied everything.
  void Sync(const std::string& name, uint64_t incarnation = 1,
            absl::Duration now = absl::Seconds(0)) {
    ASSERT_TRUE(Join(name, incarnation, now).ok());
    Beat(name, incarnation, members_.Find(name)->sequence + 1, Progress::kCaughtUp, now);
  }
  v1::MemberState State(const std::string& name) const { return members_.Find(name)->state; }
  std::string Reason(const std::string& name) const { return members_.Find(name)->reason; }

  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  std::vector<std::string> changes_;  // "name: word", in order
  std::string last_reason_;           // of the worker, as the last change was reported
  Membership members_;
};

// At least two workers are needed; a joiner is on probation for three updates.
class RunMembersFixture : public MembersFixture {
 protected:
  RunMembersFixture()
      : MembersFixture({.max_workers = 8,
                        .lease = absl::Seconds(30),
                        .suspect_after = absl::Seconds(5),
                        .min_workers = 2,
                        .probation_rounds = 3}) {}

  // A run that has begun with workers a, b and c.
  void Start() {
    for (const char* name : {"a", "b", "c"}) Sync(name);
    members_.FixFingerprint("data");
  }
  v1::Member Recorded(const std::string& name, v1::MemberState state, uint32_t probation_left = 0) {
    v1::Member member;
    member.set_name(name);
    member.set_state(state);
    member.set_probation_left(probation_left);
    return member;
  }
  v1::QuarantinedWorker Entry(const std::string& name, const std::string& reason) {
    v1::QuarantinedWorker entry;
    entry.set_name(name);
    entry.set_reason(reason);
    entry.set_round(12);
    return entry;
  }
  void Mismatch(const std::string& name, uint64_t round) {
    members_.Apply(name, MemberEvent::kHashMismatch, "tensors t1", RoundId(round));
  }
  // The worker has a mismatch at `round`, resyncs, and takes part again.
  void MismatchAndComeBack(const std::string& name, uint64_t round) {
    Mismatch(name, round);
    ASSERT_EQ(State(name), v1::MEMBER_STATE_JOINING);
    ASSERT_TRUE(Join(name).ok());
    Beat(name, 1, round + 1, Progress::kCaughtUp, absl::Seconds(0));
    members_.EnterSynced();
    for (int i = 0; i < 3; ++i) members_.Apply(name, MemberEvent::kGoodUpdate);
    ASSERT_EQ(State(name), v1::MEMBER_STATE_ACTIVE);
  }
};

}  // namespace distro::server
