#include "worker/fsdp/nccl_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// Polling interval for a call that NCCL has not accepted yet.
constexpr absl::Duration kSettleInterval = absl::Microseconds(50);

absl::Status NcclStatus(ncclResult_t result, const std::string& what) {
  if (result == ncclSuccess) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": NCCL: ", ncclGetErrorString(result)));
}

}  // namespace

CudaEvent::CudaEvent(Timing timing) {
  const unsigned flags = timing == Timing::kYes ? cudaEventDefault : cudaEventDisableTiming;
  TORCH_CHECK(cudaEventCreateWithFlags(&event_, flags) == cudaSuccess, "no CUDA event");
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

NcclGroup::NcclGroup(const std::vector<int>& devices, const NcclOptions& options)
    : devices_(devices),
      options_(options),
      meeting_(static_cast<int>(devices.size()),
               {.watchdog = options.watchdog, .clock = options.clock}) {
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    handles_.push_back(std::make_unique<Handle>());
  }
  watch_ = std::thread([this] { WatchLoop(); });
}

NcclGroup::~NcclGroup() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    stopped_.SignalAll();
  }
  watch_.join();
  AbortHandles();
}

absl::Status NcclGroup::Connect() {
  ncclUniqueId id;
  DISTRO_RETURN_IF_ERROR(NcclStatus(ncclGetUniqueId(&id), "unique id"));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that Abort finds no thread inside NCCL
  ncclResult_t result = ncclGroupStart();
  for (int rank = 0; rank < ranks() && result == ncclSuccess; ++rank) {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(devices_[rank]));
    absl::MutexLock lock(&handles_[rank]->mu);
    result = ncclCommInitRankConfig(&handles_[rank]->comm, ranks(), id, rank, &config);
    if (result == ncclInProgress) result = ncclSuccess;
  }
  const ncclResult_t ended = ncclGroupEnd();
  if (result == ncclSuccess && ended != ncclInProgress) result = ended;
  DISTRO_RETURN_IF_ERROR(NcclStatus(result, "connect"));
  for (const auto& handle : handles_) {
    absl::MutexLock lock(&handle->mu);
    DISTRO_RETURN_IF_ERROR(
        Settle(*handle, ncclInProgress, {.operation = "connect", .what = "ranks"}));
  }
  return absl::OkStatus();
}

// Waits until NCCL has accepted the call, or the group has ended.
absl::Status NcclGroup::Settle(Handle& handle, ncclResult_t result, const RankCall& call) {
  const absl::Duration start = options_.clock->MonotonicNow();
  while (result == ncclInProgress) {
    if (handle.comm == nullptr) return Ended(call);
    const ncclResult_t asked = ncclCommGetAsyncError(handle.comm, &result);
    if (asked != ncclSuccess) result = asked;
    if (result != ncclInProgress) break;
    DISTRO_RETURN_IF_ERROR(Ended(call));
    if (options_.clock->MonotonicNow() - start > options_.watchdog) {
      return absl::DeadlineExceededError(absl::StrCat(call.Describe(), ": not taken within ",
                                                      absl::FormatDuration(options_.watchdog)));
    }
    absl::SleepFor(kSettleInterval);
  }
  return NcclStatus(result, call.Describe());
}

absl::Status NcclGroup::Call(int rank, const RankCall& call,
                             absl::FunctionRef<ncclResult_t(ncclComm_t)> body) {
  const absl::Status status =
      meeting_.Together(rank, call, [&] { return Enqueue(*handles_[rank], call, body); });
  if (!status.ok()) End(rank, status);
  return status;
}

absl::Status NcclGroup::Enqueue(Handle& handle, const RankCall& call,
                                absl::FunctionRef<ncclResult_t(ncclComm_t)> body) {
  absl::MutexLock lock(&handle.mu);
  if (handle.comm == nullptr)
    return absl::AbortedError(absl::StrCat(call.Describe(), ": the group ended"));
  ncclResult_t result = ncclGroupStart();
  if (result == ncclSuccess) result = body(handle.comm);
  const ncclResult_t ended = ncclGroupEnd();
  if (result == ncclSuccess || result == ncclInProgress) result = ended;
  return Settle(handle, result, call);
}

void NcclGroup::Watch(int rank, CollectiveOp op, const RankCall& call,
                      std::shared_ptr<CudaEvent> begin, std::shared_ptr<CudaEvent> done) {
  absl::MutexLock lock(&mu_);
  under_way_.push_back({.rank = rank,
                        .op = op,
                        .operation = call.Describe(),
                        .begin = std::move(begin),
                        .done = std::move(done),
                        .start = options_.clock->MonotonicNow()});
}

void NcclGroup::End(int rank, const absl::Status& why) {
  meeting_.End(rank, why);
  AbortHandles();
}

void NcclGroup::AbortHandles() {
  for (const auto& handle : handles_) {
    absl::MutexLock lock(&handle->mu);
    if (handle->comm != nullptr) ncclCommAbort(std::exchange(handle->comm, nullptr));
  }
}

void NcclGroup::WatchLoop() {
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      if (!stop_) stopped_.WaitWithTimeout(&mu_, options_.poll_interval);
      if (stop_) return;
    }
    CheckHandles();
    CheckUnderWay();
  }
}

void NcclGroup::CheckHandles() {
  for (int rank = 0; rank < ranks(); ++rank) {
    ncclResult_t result = ncclSuccess;
    {
      absl::MutexLock lock(&handles_[rank]->mu);
      if (handles_[rank]->comm == nullptr) continue;
      const ncclResult_t asked = ncclCommGetAsyncError(handles_[rank]->comm, &result);
      if (asked != ncclSuccess) result = asked;
    }
    if (result != ncclInProgress && result != ncclSuccess) {
      End(rank, NcclStatus(result, "operations under way"));
    }
  }
}

void NcclGroup::CountTime(const UnderWay& operation) const {
  float milliseconds = 0;
  if (options_.time == nullptr || cudaEventElapsedTime(&milliseconds, operation.begin->get(),
                                                       operation.done->get()) != cudaSuccess) {
    return;
  }
  options_.time->Add(operation.op, absl::Milliseconds(double{milliseconds}));
}

void NcclGroup::CheckUnderWay() {
  absl::Status late;
  {
    absl::MutexLock lock(&mu_);
    for (; !under_way_.empty() && under_way_.front().done->done(); under_way_.pop_front())
      CountTime(under_way_.front());
    const absl::Duration now = options_.clock->MonotonicNow();
    for (const UnderWay& operation : under_way_) {
      if (now - operation.start > options_.watchdog && !operation.done->done()) {
        late = absl::DeadlineExceededError(absl::StrCat(operation.operation, ": rank ",
                                                        operation.rank, " did not finish within ",
                                                        absl::FormatDuration(options_.watchdog)));
        break;
      }
    }
  }
  if (!late.ok()) End(/*rank=*/-1, late);
}

}  // namespace distro::worker
