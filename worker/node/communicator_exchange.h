// Adapts a rank's communicator to its update rule, whose interface has no Torch. Borrows the
// communicator; used on the rank's thread.
#pragma once

#include <cstdint>

#include "worker/fsdp/communicator.h"
#include "worker/rules/rank_exchange.h"

namespace distro::worker {

class CommunicatorExchange final : public RankExchange {
 public:
  // The floats are in the memory of `memory`; transfers run on `compute`, the rank's device.
  CommunicatorExchange(Communicator* communicator, at::Device memory, at::Device compute)
      : communicator_(communicator), memory_(memory), compute_(compute) {}

  int rank() const override { return communicator_->rank(); }
  int ranks() const override { return communicator_->ranks(); }

  absl::Status AllToAll(absl::string_view what, absl::Span<const int64_t> counts,
                        const SharedFloats& send, const SharedFloats& receive) override;
  absl::Status AllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                         const SharedFloats& whole) override;

 private:
  // The tensor keeps the floats alive.
  at::Tensor TensorOf(const SharedFloats& floats) const;

  Communicator* const communicator_;
  const at::Device memory_;
  const at::Device compute_;
};

}  // namespace distro::worker
