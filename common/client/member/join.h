// Joining, as a session's first call and again. Blocking.
#pragma once

#include "absl/status/statusor.h"
#include "common/client/connection.h"
#include "common/client/member/background.h"
#include "distro/v1/session.pb.h"

namespace distro {

// One attempt, with the link's measured rate filled in; `wait_for_ready`: waits for the connection. Unavailable with reason `fenced`: the answer is that of an aggregator of the same run that was replaced (its
// epoch is below the request's). Otherwise the aggregator's status.
absl::StatusOr<v1::JoinResponse> JoinOnce(const Background& background, Connection* connection,
                                          const v1::JoinRequest& request,
                                          bool wait_for_ready = false);

// Until there is an answer that counts. The status that ended the session, or a refusal that does not change.
absl::StatusOr<v1::JoinResponse> JoinUntilAnswered(const Background& background,
                                                   Connection* connection,
                                                   const v1::JoinRequest& request);

}  // namespace distro
