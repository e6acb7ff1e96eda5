#include "worker/node/communicator_exchange.h"

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// Keeps the floats for as long as somebody has the tensor.
at::Tensor TensorOf(const SharedFloats& floats) {
  return at::from_blob(
      floats->data(), {static_cast<int64_t>(floats->size())}, [floats](void* /*data*/) {},
      at::kFloat);
}

}  // namespace

absl::Status CommunicatorExchange::AllToAll(absl::string_view what,
                                            absl::Span<const int64_t> counts,
                                            const SharedFloats& send, const SharedFloats& receive) {
  return CatchTorch(what, [&]() -> absl::Status {
    DISTRO_ASSIGN_OR_RETURN(
        const Transfer transfer,
        communicator_->StartAllToAll(what, counts, TensorOf(send), TensorOf(receive)));
    return communicator_->Wait(transfer);
  });
}

absl::Status CommunicatorExchange::AllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                             const SharedFloats& whole) {
  return CatchTorch(what, [&]() -> absl::Status {
    const at::Tensor all = TensorOf(whole);
    const int64_t begin = cuts[rank()], end = cuts[rank() + 1];
    DISTRO_ASSIGN_OR_RETURN(
        const Transfer transfer,
        communicator_->StartAllGather(what, cuts, all.narrow(0, begin, end - begin), all));
    return communicator_->Wait(transfer);
  });
}

}  // namespace distro::worker
