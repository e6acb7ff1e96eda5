// The state shared by the threads of one session with an aggregator: a client's state, and the
// response to Join.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/client/client_state.h"
#include "distro/v1/session.pb.h"

namespace distro {

class MemberState : public ClientState {
 public:
  // `request` is the Join that began the session, or will begin it; in that case `response` is
  // empty.
  MemberState(v1::JoinRequest request, const v1::JoinResponse& response);

  // Constant.
  const v1::WorkerIdentity& worker() const { return request_.worker(); }
  const std::string& run_id() const { return request_.run_id(); }
  RoundId rounds() const { return rounds_; }
  // URLs, as the aggregator named them.
  const std::vector<std::string>& mirrors() const { return mirrors_; }

  // The request to join again, with the run and the highest epoch seen.
  v1::JoinRequest RejoinRequest() const;

  // Whether the session may continue after `response` to a repeated Join. FailedPrecondition with
  // reason `other_run` names what differs.
  absl::Status CheckSameRun(const v1::JoinResponse& response) const;

 private:
  // Constant after construction.
  v1::JoinRequest request_;
  RoundId rounds_;
  std::vector<std::string> mirrors_;
  std::string manifest_hash_;
  uint32_t segment_blocks_ = 0;
};

}  // namespace distro
