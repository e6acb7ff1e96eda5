// Every collective operation once, with valid arguments, for tests in which ranks fail.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker::testing {

inline const std::vector<std::string>& AllCollectives() {
  static const auto* const kAll =
      new std::vector<std::string>{"all-gather", "reduce-scatter", "all-to-all", "barrier"};
  return *kAll;
}

// Rank r has r + 1 elements of the whole.
inline std::vector<int64_t> Cuts(int ranks) {
  std::vector<int64_t> cuts = {0};
  for (int rank = 0; rank < ranks; ++rank) cuts.push_back(cuts.back() + rank + 1);
  return cuts;
}

inline absl::Status Finish(Communicator& communicator, const absl::StatusOr<Transfer>& started) {
  return started.ok() ? communicator.Wait(*started) : started.status();
}

inline absl::Status Collective(const std::string& name, Communicator& communicator,
                               at::Device device = at::kCPU) {
  const std::vector<int64_t> cuts = Cuts(communicator.ranks());
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const at::Tensor own = at::zeros({communicator.rank() + 1}, options);
  const at::Tensor whole = at::zeros({cuts.back()}, options);
  if (name == "all-gather") {
    return Finish(communicator, communicator.StartAllGather("thing", cuts, own, whole));
  }
  if (name == "reduce-scatter") {
    return Finish(communicator, communicator.StartReduceScatter("thing", cuts, whole, at::kFloat,
                                                                Accumulation::kStore, own));
  }
  if (name == "all-to-all") {
    const std::vector<int64_t> ones(communicator.ranks() * communicator.ranks(), 1);
    const at::Tensor send = at::zeros({communicator.ranks()}, options);
    return Finish(communicator,
                  communicator.StartAllToAll("thing", ones, send, at::empty_like(send)));
  }
  return communicator.Barrier("thing");
}

}  // namespace distro::worker::testing
