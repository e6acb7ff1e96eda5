#include "worker/fsdp/nccl_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// Polling interval for a call that NCCL has not accepted yet.
constexpr absl::Duration kSettleInterval = absl::Microseconds(50);

}  // namespace

absl::StatusOr<bool> IsDone(const c10::Event& event, absl::string_view what) {
  return CatchTorch(what, [&]() -> absl::StatusOr<bool> { return event.query(); });
}

NcclGroup::NcclGroup(std::shared_ptr<Nccl> nccl, const std::vector<at::Device>& devices,
                     const NcclOptions& options)
    : nccl_(std::move(nccl)),
      devices_(devices),
      options_(options),
      meeting_(static_cast<int>(devices.size()),
               {.watchdog = options.watchdog, .clock = options.clock}) {
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    handles_.push_back(std::make_unique<Handle>());
  }
  watch_ = std::thread([this] { WatchLoop(); });
}

NcclGroup::~NcclGroup() {
  stop_.Notify();
  watch_.join();
  AbortHandles();
}

absl::Status NcclGroup::StatusOf(NcclResult result, absl::string_view what) const {
  if (result == NcclResult::kSuccess) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": NCCL: ", nccl_->ErrorString(result)));
}

absl::Status NcclGroup::Connect() {
  std::vector<std::unique_ptr<NcclComm>> comms;
  const NcclResult result = nccl_->Connect(devices_, &comms);
  if (result != NcclResult::kInProgress) DISTRO_RETURN_IF_ERROR(StatusOf(result, "connect"));
  for (int rank = 0; rank < ranks(); ++rank) {
    absl::MutexLock lock(&handles_[rank]->mu);
    handles_[rank]->comm = std::move(comms[rank]);
  }
  // Only with all handles in place: what ends the group meanwhile aborts every one.
  for (const auto& handle : handles_) {
    absl::MutexLock lock(&handle->mu);
    DISTRO_RETURN_IF_ERROR(
        Settle(*handle, NcclResult::kInProgress, {.operation = "connect", .what = "ranks"}));
  }
  return absl::OkStatus();
}

// Waits until NCCL has accepted the call, or the group has ended.
absl::Status NcclGroup::Settle(Handle& handle, NcclResult result, const RankCall& call) {
  const absl::Duration start = options_.clock->MonotonicNow();
  while (result == NcclResult::kInProgress) {
    if (handle.comm == nullptr) return Ended(call);
    result = handle.comm->AsyncError();
    if (result != NcclResult::kInProgress) break;
    // AbortHandles waits for the lock that the caller holds.
    DISTRO_RETURN_IF_ERROR(Ended(call));
    if (options_.clock->MonotonicNow() - start > options_.watchdog) {
      return absl::DeadlineExceededError(absl::StrCat(call.Describe(),
                                                      ": NCCL did not accept it within ",
                                                      absl::FormatDuration(options_.watchdog)));
    }
    absl::SleepFor(kSettleInterval);
  }
  return StatusOf(result, call.Describe());
}

absl::Status NcclGroup::Call(int rank, const RankCall& call,
                             absl::FunctionRef<NcclResult(NcclComm&)> body) {
  const absl::Status status =
      meeting_.Together(rank, call, [&] { return Enqueue(*handles_[rank], call, body); });
  if (!status.ok()) End(rank, status);
  return status;
}

absl::Status NcclGroup::Enqueue(Handle& handle, const RankCall& call,
                                absl::FunctionRef<NcclResult(NcclComm&)> body) {
  absl::MutexLock lock(&handle.mu);
  if (handle.comm == nullptr) return Ended(call);  // since the meeting
  NcclResult result = nccl_->GroupStart();
  if (result == NcclResult::kSuccess) result = body(*handle.comm);
  // Also after an error: a group that began must end.
  const NcclResult ended = nccl_->GroupEnd();
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) result = ended;
  return Settle(handle, result, call);
}

void NcclGroup::Watch(int rank, CollectiveOp op, const RankCall& call,
                      std::shared_ptr<c10::Event> begin, std::shared_ptr<c10::Event> done) {
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
    // Aborts it, with kernels that wait for a peer: the device's streams go on.
    handle->comm.reset();
  }
}

void NcclGroup::WatchLoop() {
  while (!stop_.WaitFor(options_.poll_interval)) {
    meeting_.CheckWatchdog();
    CheckHandles();
    CheckUnderWay();
  }
}

void NcclGroup::CheckHandles() {
  for (int rank = 0; rank < ranks(); ++rank) {
    NcclResult result = NcclResult::kSuccess;
    {
      absl::MutexLock lock(&handles_[rank]->mu);
      if (handles_[rank]->comm != nullptr) result = handles_[rank]->comm->AsyncError();
    }
    // Outside the lock: End takes those of all handles.
    if (result != NcclResult::kInProgress && result != NcclResult::kSuccess) {
      End(rank, StatusOf(result, "operations under way"));
    }
  }
}

void NcclGroup::CountTime(const UnderWay& operation) const {
  if (options_.time == nullptr) return;
  CatchTorch("time", [&] {
    options_.time->Add(operation.op,
                       absl::Milliseconds(operation.begin->elapsedTime(*operation.done)));
    return absl::OkStatus();
  }).IgnoreError();  // a time is missing; that is all
}

void NcclGroup::CheckUnderWay() {
  absl::Status failed;
  int rank = -1;
  {
    absl::MutexLock lock(&mu_);
    const absl::Duration now = options_.clock->MonotonicNow();
    for (auto operation = under_way_.begin(); operation != under_way_.end() && failed.ok();) {
      const absl::StatusOr<bool> done = IsDone(*operation->done, operation->operation);
      if (done.ok() && !*done) {
        // Any rank may be the cause, so `rank` stays -1.
        if (now - operation->start > options_.watchdog) failed = Late(*operation);
        ++operation;
        continue;
      }
      if (done.ok()) {
        CountTime(*operation);
      } else {
        failed = done.status();
        rank = operation->rank;
      }
      operation = under_way_.erase(operation);
    }
  }
  if (!failed.ok()) End(rank, failed);
}

absl::Status NcclGroup::Late(const UnderWay& operation) const {
  return absl::DeadlineExceededError(absl::StrCat(operation.operation, ": rank ", operation.rank,
                                                  " did not finish within ",
                                                  absl::FormatDuration(options_.watchdog)));
}

}  // namespace distro::worker
