// Collective operations of the ranks of one node (docs/fsdp.md, "Communicators"). One object per
// rank; every rank calls the same operations in the same order with the same names and cuts. Two
// implementations: ranks that are threads of this process, on any device (thread_communicator.h),
// and NCCL (nccl_communicator.h).
//
//   DISTRO_ASSIGN_OR_RETURN(Transfer t, communicator->StartAllGather(what, cuts, shard, whole));
//   DISTRO_RETURN_IF_ERROR(communicator->Wait(t));
//
// A rank that fails calls Abort; the watchdog detects a rank that hangs. In both cases the current
// and every later operation of every other rank returns an error that names a rank and the
// operation: an aborted group does not recover.
//   Aborted           another rank failed; its status and rank are in the message
//   DeadlineExceeded  a rank did not arrive at the operation within the watchdog's time; names
//                     operation and absent ranks
//   InvalidArgument   arguments of one rank are wrong; Internal: ranks called different operations
// Waiting ranks sleep. Not thread-safe, but Abort may be called from any thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/model/model.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// A started operation; used only by the rank that started it.
struct Transfer {
  int64_t number = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;   // 0..ranks() - 1
  virtual int ranks() const = 0;  // R

  // Every operation takes `what`, a name of the data ("block 3 parameters") for messages. Tensors
  // have one dimension, are contiguous and on this rank's device; their memory, not their autograd
  // state, is read and written. They stay alive and unchanged until Wait. On a device stream "done"
  // means: ordered before later work on the caller's current stream.
  //
  // cuts  [R + 1], ascending, first 0: rank r has elements [cuts[r], cuts[r+1]) of the whole.
  // Ranges may be uneven or empty.

  // whole <- the shards of all ranks. Starts the operation; it is done after Wait.
  //
  //   shard  [cuts[rank+1] - cuts[rank]]  in; may lie in `whole` at its place
  //   whole  [cuts[R]]                    out, of the same type
  virtual absl::StatusOr<Transfer> StartAllGather(absl::string_view what,
                                                  absl::Span<const int64_t> cuts,
                                                  const at::Tensor& shard,
                                                  const at::Tensor& whole) = 0;
  // sum <- part of rank 0 + part of rank 1 + ... (kStore), or sum + part of rank 0 + ... (kAdd),
  // each rank for its own range. In ascending rank order, every sum rounded to f32, in process;
  // NCCL sums the parts in its own order and in their type. Starts it, like StartAllGather.
  //
  //   part  [cuts[R]]  in; of part_type, f32 or bf16, the same on all ranks; undefined: this rank
  //         adds nothing
  //   sum   f32 [cuts[rank+1] - cuts[rank]]  in, out; may lie in an f32 `part` at its place with
  //         kStore. At least one rank has a part
  virtual absl::StatusOr<Transfer> StartReduceScatter(
      absl::string_view what, absl::Span<const int64_t> cuts, const at::Tensor& part,
      at::ScalarType part_type, Accumulation accumulation, const at::Tensor& sum) = 0;
  // receive <- the elements that every rank sends to this one, in ascending rank order. Starts it,
  // like StartAllGather.
  //
  //   counts   [R * R], the same on all ranks: counts[s * R + d] elements go from rank s to rank d
  //   send     what goes to rank 0, then to rank 1, ...  in
  //   receive  what comes from rank 0, then from rank 1, ...  out, of the same type; other memory
  virtual absl::StatusOr<Transfer> StartAllToAll(absl::string_view what,
                                                 absl::Span<const int64_t> counts,
                                                 const at::Tensor& send,
                                                 const at::Tensor& receive) = 0;

  // Waits until the operation is done. Internal: the transfer is not under way: it was not started
  // by this object, or was waited for already.
  virtual absl::Status Wait(Transfer transfer) = 0;

  // Returns when every rank has called it.
  virtual absl::Status Barrier(absl::string_view what) = 0;

  // OK while the group works; otherwise the error of `what`. On a device stream an aborted
  // operation looks done: after synchronising, its results are valid only if this returns OK.
  virtual absl::Status Check(absl::string_view what) const = 0;

  // Ends the group: `why`, not OK, becomes the other ranks' error, "rank 2 failed: ...". Only the
  // first call counts.
  virtual void Abort(const absl::Status& why) = 0;
};

}  // namespace distro::worker
