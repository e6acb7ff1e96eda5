#include "worker/fsdp/nccl_library.h"

#include <nccl.h>

#include "worker/torch/cuda_torch.h"

namespace distro::worker {
namespace {

static_assert(static_cast<int>(NcclResult::kSuccess) == ncclSuccess);
static_assert(static_cast<int>(NcclResult::kInProgress) == ncclInProgress);

NcclResult Of(ncclResult_t result) { return static_cast<NcclResult>(result); }

ncclDataType_t Of(at::ScalarType type) {
  if (type == at::kBFloat16) return ncclBfloat16;
  return type == at::kByte ? ncclUint8 : ncclFloat32;
}

cudaStream_t Of(const c10::Stream& stream) { return c10::cuda::CUDAStream(stream).stream(); }

class Comm final : public NcclComm {
 public:
  explicit Comm(ncclComm_t comm) : comm_(comm) {}
  ~Comm() override { ncclCommAbort(comm_); }

  NcclResult AllGather(const void* from, void* to, int64_t count, at::ScalarType type,
                       const c10::Stream& stream) override {
    return Of(ncclAllGather(from, to, static_cast<size_t>(count), Of(type), comm_, Of(stream)));
  }
  NcclResult Broadcast(const void* from, void* to, int64_t count, at::ScalarType type, int root,
                       const c10::Stream& stream) override {
    return Of(
        ncclBroadcast(from, to, static_cast<size_t>(count), Of(type), root, comm_, Of(stream)));
  }
  NcclResult Reduce(const void* from, void* to, int64_t count, at::ScalarType type, int root,
                    const c10::Stream& stream) override {
    return Of(ncclReduce(from, to, static_cast<size_t>(count), Of(type), ncclSum, root, comm_,
                         Of(stream)));
  }
  NcclResult ReduceScatter(const void* from, void* to, int64_t count, at::ScalarType type,
                           const c10::Stream& stream) override {
    return Of(ncclReduceScatter(from, to, static_cast<size_t>(count), Of(type), ncclSum, comm_,
                                Of(stream)));
  }
  NcclResult Send(const void* from, int64_t count, at::ScalarType type, int to,
                  const c10::Stream& stream) override {
    return Of(ncclSend(from, static_cast<size_t>(count), Of(type), to, comm_, Of(stream)));
  }
  NcclResult Recv(void* to, int64_t count, at::ScalarType type, int from,
                  const c10::Stream& stream) override {
    return Of(ncclRecv(to, static_cast<size_t>(count), Of(type), from, comm_, Of(stream)));
  }
  NcclResult AsyncError() override {
    ncclResult_t result = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
    return Of(asked == ncclSuccess ? result : asked);
  }

 private:
  const ncclComm_t comm_;
};

class Library final : public Nccl {
 public:
  const char* ErrorString(NcclResult result) const override {
    return ncclGetErrorString(static_cast<ncclResult_t>(result));
  }

  NcclResult Connect(const std::vector<at::Device>& devices,
                     std::vector<std::unique_ptr<NcclComm>>* comms) override {
    ncclUniqueId id;
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) return Of(result);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    // A call that blocks could not be given up when a peer does not come.
    config.blocking = 0;
    std::vector<ncclComm_t> made(devices.size(), nullptr);
    // One thread makes all ranks: without a group the first would wait for the others.
    result = ncclGroupStart();
    for (size_t rank = 0; rank < devices.size() && result == ncclSuccess; ++rank) {
      const c10::DeviceGuard guard(devices[rank]);
      result = ncclCommInitRankConfig(&made[rank], static_cast<int>(devices.size()), id,
                                      static_cast<int>(rank), &config);
      if (result == ncclInProgress) result = ncclSuccess;
    }
    const ncclResult_t ended = ncclGroupEnd();
    for (const ncclComm_t comm : made) {
      if (comm != nullptr) comms->push_back(std::make_unique<Comm>(comm));
    }
    return Of(result == ncclSuccess ? ended : result);
  }

  NcclResult GroupStart() override { return Of(ncclGroupStart()); }
  NcclResult GroupEnd() override { return Of(ncclGroupEnd()); }
};

}  // namespace

std::shared_ptr<Nccl> NcclLibrary() { return std::make_shared<Library>(); }

}  // namespace distro::worker
