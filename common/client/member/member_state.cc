#include "common/client/member/member_state.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/epoch.h"
#include "common/base/reason.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

absl::Status OtherRunError(absl::string_view message) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run", message);
}

}  // namespace

MemberState::MemberState(v1::JoinRequest request, const v1::JoinResponse& response)
    : ClientState(EpochId(response.epoch()), RoundId(response.head_round())),
      request_(std::move(request)),
      rounds_(response.config().rounds()),
      mirrors_(response.mirrors().begin(), response.mirrors().end()),
      manifest_hash_(response.manifest_hash()),
      segment_blocks_(response.config().segment_blocks()) {
  if (!response.run_id().empty()) request_.set_run_id(response.run_id());
}

v1::JoinRequest MemberState::RejoinRequest() const {
  v1::JoinRequest request = request_;
  request.set_epoch(KeptEpoch(view().epoch, absl::Now()).value());
  return request;
}

absl::Status MemberState::CheckSameRun(const v1::JoinResponse& response) const {
  if (response.run_id() != run_id()) {
    return OtherRunError(absl::StrCat("the aggregator has run ", ShownText(response.run_id()),
                                      " now, this worker trains run ", run_id(),
                                      ": start the worker again"));
  }
  if (response.manifest_hash() != manifest_hash_) {
    return OtherRunError(absl::StrCat("run ", run_id(), " has other tensors (manifest ",
                                      ShownText(absl::BytesToHexString(response.manifest_hash())),
                                      ") than when this worker joined (",
                                      absl::BytesToHexString(manifest_hash_),
                                      "): start the worker again"));
  }
  if (response.config().segment_blocks() != segment_blocks_) {
    return OtherRunError(absl::StrCat("run ", run_id(),
                                      " has another segment_blocks than when this worker joined: "
                                      "start the worker again"));
  }
  return absl::OkStatus();
}

}  // namespace distro
