// A rank's communicator as its update rule uses it: floats in the host's memory, without Torch.
// Borrows the communicator; used on the rank's thread.
#pragma once

#include <cstdint>

#include "worker/fsdp/communicator.h"
#include "worker/optimizer/rank_exchange.h"

namespace distro::worker {

class CommunicatorExchange final : public RankExchange {
 public:
  explicit CommunicatorExchange(Communicator* communicator) : communicator_(communicator) {}

  int rank() const override { return communicator_->rank(); }
  int ranks() const override { return communicator_->ranks(); }

  absl::Status AllToAll(absl::string_view what, absl::Span<const int64_t> counts,
                        const SharedFloats& send, const SharedFloats& receive) override;
  absl::Status AllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                         const SharedFloats& whole) override;

 private:
  Communicator* const communicator_;
};

}  // namespace distro::worker
