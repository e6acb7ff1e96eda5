#include "worker/fsdp/nccl_group.h"

#include <utility>

#include "absl/strings/match.h"
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
      arrivals_(static_cast<int>(devices.size())),
      numbers_(devices.size(), 0) {
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
    DISTRO_RETURN_IF_ERROR(Settle(*handle, ncclInProgress, "connect"));
  }
  return absl::OkStatus();
}

// Waits until NCCL has accepted the call, or the group has ended.
absl::Status NcclGroup::Settle(Handle& handle, ncclResult_t result, const std::string& operation) {
  const absl::Duration start = options_.clock->MonotonicNow();
  while (result == ncclInProgress) {
    if (handle.comm == nullptr) return Ended(operation);
    const ncclResult_t asked = ncclCommGetAsyncError(handle.comm, &result);
    if (asked != ncclSuccess) result = asked;
    if (result != ncclInProgress) break;
    DISTRO_RETURN_IF_ERROR(Ended(operation));
    if (options_.clock->MonotonicNow() - start > options_.watchdog) {
      return absl::DeadlineExceededError(
          absl::StrCat(operation, ": not taken within ", absl::FormatDuration(options_.watchdog)));
    }
    absl::SleepFor(kSettleInterval);
  }
  return NcclStatus(result, operation);
}

absl::Status NcclGroup::Call(int rank, const std::string& operation,
                             absl::FunctionRef<ncclResult_t(ncclComm_t)> body) {
  int64_t number = 0;
  {
    absl::MutexLock lock(&mu_);
    numbers_[rank] = number = arrivals_.Arrive(rank);
  }
  absl::Status status;
  {
    Handle& handle = *handles_[rank];
    absl::MutexLock lock(&handle.mu);
    DISTRO_RETURN_IF_ERROR(Ended(operation));
    if (handle.comm == nullptr)
      return absl::AbortedError(absl::StrCat(operation, ": the group ended"));
    ncclResult_t result = ncclGroupStart();
    if (result == ncclSuccess) result = body(handle.comm);
    const ncclResult_t ended = ncclGroupEnd();
    if (result == ncclSuccess || result == ncclInProgress) result = ended;
    status = Settle(handle, result, operation);
  }
  if (!absl::IsDeadlineExceeded(status)) {
    if (!status.ok()) End(rank, status);
    return status;
  }
  {
    absl::MutexLock lock(&mu_);
    status = arrivals_.NotDone(operation, number, rank, options_.watchdog);
  }
  End(/*rank=*/-1, status);
  return status;
}

void NcclGroup::Watch(int rank, CollectiveOp op, const std::string& operation,
                      std::shared_ptr<CudaEvent> begin, std::shared_ptr<CudaEvent> done) {
  absl::MutexLock lock(&mu_);
  under_way_.push_back({.rank = rank,
                        .op = op,
                        .operation = operation,
                        .number = numbers_[rank],
                        .begin = std::move(begin),
                        .done = std::move(done),
                        .start = options_.clock->MonotonicNow()});
}

void NcclGroup::End(int rank, const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (!end_.ok()) return;
    end_ = why;
    failed_rank_ = rank;
  }
  AbortHandles();
}

absl::Status NcclGroup::Ended(const std::string& operation) const {
  absl::MutexLock lock(&mu_);
  if (end_.ok()) return absl::OkStatus();
  if (failed_rank_ >= 0) {
    return absl::AbortedError(
        absl::StrCat(operation, ": rank ", failed_rank_, " failed: ", end_.message()));
  }
  if (absl::StrContains(end_.message(), operation)) return end_;
  return absl::Status(end_.code(), absl::StrCat(operation, ": ", end_.message()));
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
        late = arrivals_.NotDone(operation.operation, operation.number, operation.rank,
                                 options_.watchdog);
        break;
      }
    }
  }
  if (!late.ok()) End(/*rank=*/-1, late);
}

}  // namespace distro::worker
