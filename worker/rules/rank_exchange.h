// Collective operations by which the rules of a node's ranks exchange parts of matrices, without
// Torch. Every rank makes the same calls with the same names and counts. Used on the rank's thread;
// blocks until the other ranks have called.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/rules/deltas/orthogonalizer.h"

namespace distro::worker {

class RankExchange {
 public:
  virtual ~RankExchange() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;  // R

  // As Communicator::StartAllToAll, done when it returns.
  //
  //   counts   [R * R]: counts[s * R + d] elements go from rank s to rank d
  //   send     f32, what goes to rank 0, then to rank 1, ...  in
  //   receive  f32, what comes from rank 0, then from rank 1, ...  out
  virtual absl::Status AllToAll(absl::string_view what, absl::Span<const int64_t> counts,
                                const SharedFloats& send, const SharedFloats& receive) = 0;
  // Every rank has elements [cuts[rank], cuts[rank + 1]) of `whole` and gets the others'.
  virtual absl::Status AllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                 const SharedFloats& whole) = 0;
};

}  // namespace distro::worker
