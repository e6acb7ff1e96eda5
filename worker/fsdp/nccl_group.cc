#include "worker/fsdp/nccl_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// How often a call that NCCL has not taken yet is looked at.
constexpr absl::Duration kSettleInterval = absl::Microseconds(50);

absl::Status NcclStatus(ncclResult_t result, const std::string& what) {
  if (result == ncclSuccess) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": NCCL: ", ncclGetErrorString(result)));
}

}  // namespace

CudaEvent::CudaEvent() {
  TORCH_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming) == cudaSuccess,
              "no CUDA event");
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

NcclGroup::NcclGroup(const std::vector<int>& devices, const NcclOptions& options)
    : devices_(devices), options_(options) {
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

// Waits until NCCL has taken what it was given; the group's end ends the waiting.
absl::Status NcclGroup::Settle(Handle& handle, ncclResult_t result, const std::string& operation) {
  const absl::Duration start = options_.clock->MonotonicNow();
  while (result == ncclInProgress) {
    if (handle.comm == nullptr) return Ended(operation);
    const ncclResult_t asked = ncclCommGetAsyncError(handle.comm, &result);
    if (asked != ncclSuccess) result = asked;
    if (result != ncclInProgress) break;
    DISTRO_RETURN_IF_ERROR(Ended(operation));
    if (options_.clock->MonotonicNow() - start > options_.watchdog) {
      return absl::DeadlineExceededError(absl::StrCat(operation,
                                                      ": the other ranks did not come within ",
                                                      absl::FormatDuration(options_.watchdog)));
    }
    absl::SleepFor(kSettleInterval);
  }
  return NcclStatus(result, operation);
}

absl::Status NcclGroup::Call(int rank, const std::string& operation,
                             absl::FunctionRef<ncclResult_t(ncclComm_t)> body) {
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
  if (!status.ok()) End(rank, status);
  return status;
}

void NcclGroup::Watch(int rank, const std::string& operation, std::shared_ptr<CudaEvent> done) {
  absl::MutexLock lock(&mu_);
  under_way_.push_back({.rank = rank,
                        .operation = operation,
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
  return absl::AbortedError(
      absl::StrCat(operation, ": rank ", failed_rank_, " failed: ", end_.message()));
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

void NcclGroup::CheckUnderWay() {
  UnderWay late;
  {
    absl::MutexLock lock(&mu_);
    while (!under_way_.empty() && under_way_.front().done->done()) under_way_.pop_front();
    const absl::Duration now = options_.clock->MonotonicNow();
    for (const UnderWay& operation : under_way_) {
      if (now - operation.start > options_.watchdog && !operation.done->done()) {
        late = operation;
        break;
      }
    }
  }
  if (late.done == nullptr) return;
  End(late.rank, absl::DeadlineExceededError(
                     absl::StrCat(late.operation, ": not done on rank ", late.rank, " within ",
                                  absl::FormatDuration(options_.watchdog))));
}

}  // namespace distro::worker
