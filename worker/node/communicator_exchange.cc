#include "worker/node/communicator_exchange.h"

#include "common/base/status_macros.h"
#include "worker/torch/float_tensor.h"

namespace distro::worker {

at::Tensor CommunicatorExchange::TensorOf(const SharedFloats& floats) const {
  return FloatTensor(floats.floats(), memory_, floats.owner());
}

// Tensor::to returns the same tensor if it is already there.
absl::Status CommunicatorExchange::AllToAll(absl::string_view what,
                                            absl::Span<const int64_t> counts,
                                            const SharedFloats& send, const SharedFloats& receive) {
  return CatchTorch(what, [&]() -> absl::Status {
    const at::NoGradGuard no_grad;
    const at::Tensor to = TensorOf(receive);
    const at::Tensor sent = TensorOf(send).to(compute_), received = to.to(compute_);
    DISTRO_ASSIGN_OR_RETURN(const Transfer transfer,
                            communicator_->StartAllToAll(what, counts, sent, received));
    DISTRO_RETURN_IF_ERROR(communicator_->Wait(transfer));
    if (!received.is_same(to)) to.copy_(received);
    return absl::OkStatus();
  });
}

absl::Status CommunicatorExchange::AllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                             const SharedFloats& whole) {
  return CatchTorch(what, [&]() -> absl::Status {
    const at::NoGradGuard no_grad;
    const at::Tensor to = TensorOf(whole);
    const at::Tensor all = to.to(compute_);
    const int64_t begin = cuts[rank()], end = cuts[rank() + 1];
    DISTRO_ASSIGN_OR_RETURN(
        const Transfer transfer,
        communicator_->StartAllGather(what, cuts, all.narrow(0, begin, end - begin), all));
    DISTRO_RETURN_IF_ERROR(communicator_->Wait(transfer));
    if (!all.is_same(to)) to.copy_(all);
    return absl::OkStatus();
  });
}

}  // namespace distro::worker
