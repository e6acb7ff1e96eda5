// A replica on the small layout, and rounds for it.
#pragma once

#include <memory>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "tests/testing/round_builder.h"

namespace distro::testing {

struct SmallReplica {
  explicit SmallReplica(RoundId round = RoundId(0), uint64_t log_hash = 1)
      : replica(&layout, backend.get(), Parameters(), round, log_hash) {}

  // Applies rounds until `round` is the next.
  void AdvanceTo(uint64_t round) {
    while (replica.next_round().value() < round) {
      const absl::Status status = replica.Apply(
          Committed(layout, BuildRound(layout, replica.next_round(), replica.log_hash())));
      if (!status.ok()) std::abort();
    }
  }

  TensorBuffer Parameters() const {
    TensorBuffer parameters(layout);
    for (int t = 0; t < parameters.tensors(); ++t)
      parameters.tensor(t)[0] = static_cast<float>(t + 1);
    return parameters;
  }

  const Layout layout = SmallLayout();
  const std::unique_ptr<Backend> backend = MakeReferenceBackend();
  Replica replica;
};

}  // namespace distro::testing
