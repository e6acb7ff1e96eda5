// The calls of NCCL that the communicators make, with NCCL's meanings and names: those of a library
// (nccl_library.h), or of a model in a test. Streams and events are Torch's, of a device type that
// the caller chooses.
//
// Handles do not block: a call may return kInProgress, and is accepted or refused later, which
// AsyncError says. A handle is used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/torch/device_streams.h"

namespace distro::worker {

// ncclResult_t. Every other value is an error.
enum class NcclResult : int { kSuccess = 0, kInProgress = 7 };

// A rank's handle, ncclComm_t. Pointers are of the rank's device, counts in elements of `type`.
class NcclComm {
 public:
  // ncclCommAbort: ends kernels that wait for a peer, too.
  virtual ~NcclComm() = default;

  virtual NcclResult AllGather(const void* from, void* to, int64_t count, at::ScalarType type,
                               const c10::Stream& stream) = 0;
  virtual NcclResult Broadcast(const void* from, void* to, int64_t count, at::ScalarType type,
                               int root, const c10::Stream& stream) = 0;
  // The sum, at the root.
  virtual NcclResult Reduce(const void* from, void* to, int64_t count, at::ScalarType type,
                            int root, const c10::Stream& stream) = 0;
  // Of count x ranks elements, to each rank its count.
  virtual NcclResult ReduceScatter(const void* from, void* to, int64_t count, at::ScalarType type,
                                   const c10::Stream& stream) = 0;
  virtual NcclResult Send(const void* from, int64_t count, at::ScalarType type, int to,
                          const c10::Stream& stream) = 0;
  virtual NcclResult Recv(void* to, int64_t count, at::ScalarType type, int from,
                          const c10::Stream& stream) = 0;
  // ncclCommGetAsyncError: of the last call, and of operations that run.
  virtual NcclResult AsyncError() = 0;
};

// Thread-safe.
class Nccl {
 public:
  virtual ~Nccl() = default;

  virtual const char* ErrorString(NcclResult result) const = 0;
  // Makes a handle for each device, in one group. On an error too the caller destroys those that
  // were made.
  virtual NcclResult Connect(const std::vector<at::Device>& devices,
                             std::vector<std::unique_ptr<NcclComm>>* comms) = 0;
  // What the calling thread calls between them is one kernel.
  virtual NcclResult GroupStart() = 0;
  virtual NcclResult GroupEnd() = 0;
};

}  // namespace distro::worker
