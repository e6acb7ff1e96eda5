#include "worker/node/communicator_exchange.h"

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

at::Tensor TensorOf(absl::Span<float> elements) {
  return at::from_blob(elements.data(), {static_cast<int64_t>(elements.size())}, at::kFloat);
}

}  // namespace

absl::Status CommunicatorExchange::AllToAll(absl::string_view what,
                                            absl::Span<const int64_t> counts,
                                            absl::Span<float> send, absl::Span<float> receive) {
  return CatchTorch(what, [&]() -> absl::Status {
    DISTRO_ASSIGN_OR_RETURN(
        const Transfer transfer,
        communicator_->StartAllToAll(what, counts, TensorOf(send), TensorOf(receive)));
    return communicator_->Wait(transfer);
  });
}

absl::Status CommunicatorExchange::AllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                             absl::Span<float> whole) {
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
