// A stream that ends at once: the answer to a caller who may not open it.
#pragma once

#include "absl/status/status.h"
#include "common/rpc/status.h"

namespace distro::server {

// A reactor of that base, which deletes itself. Requires a status other than OK.
template <typename Reactor>
Reactor* RefuseStream(const absl::Status& status) {
  class Refused final : public Reactor {
   public:
    explicit Refused(const absl::Status& refusal) { this->Finish(ToGrpcStatus(refusal)); }
    void OnDone() override { delete this; }
  };
  return new Refused(status);
}

}  // namespace distro::server
