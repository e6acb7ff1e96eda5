// A worker of a run in Membership. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "server/session/transition.h"

namespace distro::server {

struct Worker {
  std::string name;
  uint64_t incarnation = 0;
  v1::MemberState state = v1::MEMBER_STATE_LEFT;
  std::string reason = {};
  absl::Duration last_seen = {};  // 0: never since the aggregator started
  uint64_t sequence = 0;          // of the last heartbeat taken
  uint64_t next_round = 0;
  uint64_t own_tokens = 0;  // local data: as reported at Join; 0: not joined since the start
  std::optional<double> evaluation_loss = {};  // last reported; finite, not negative
  // The last few incarnations that were replaced, oldest first.
  std::vector<uint64_t> replaced = {};

  uint32_t probation_left = 0;  // good updates that are needed before its updates count
  bool returning = false;       // took part when the aggregator stopped, and has not since
  std::string resync = {};      // why it must resync; empty: it need not
  uint64_t synced_round = 0;    // the round before which it had last caught up
  int missed_rounds = 0;        // in a row
  int invalid_in_a_row = 0;
  std::vector<uint64_t> mismatches = {};  // rounds, within kResyncWindowRounds
  uint64_t quarantine_round = 0;

  bool in_session() const {
    return state != v1::MEMBER_STATE_LEFT && state != v1::MEMBER_STATE_QUARANTINED;
  }
  bool heard() const { return last_seen != absl::ZeroDuration(); }
  // Gets samples and may upload.
  bool takes_part() const { return TakesPart(state); }
  // The weight of its votes: 0 on probation, and if it does not take part.
  int weight() const { return takes_part() && probation_left == 0 ? 1 : 0; }
};

}  // namespace distro::server
