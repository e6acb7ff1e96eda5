// The state shared by the NCCL communicators of one node: their handles, the operations in flight,
// the final status. Implementation detail of nccl_communicator.h. Thread-safe.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/steady_cond_var.h"
#include "worker/fsdp/nccl_api.h"
#include "worker/fsdp/nccl_communicator.h"
#include "worker/fsdp/thread_group.h"

namespace distro::worker {

// Whether the work before the event is done. An error: the device reports one.
absl::StatusOr<bool> IsDone(const c10::Event& event, absl::string_view what);

class NcclGroup {
 public:
  // Call Connect next.
  NcclGroup(std::shared_ptr<Nccl> nccl, const std::vector<at::Device>& devices,
            const NcclOptions& options);
  ~NcclGroup();

  absl::Status Connect();

  int ranks() const { return static_cast<int>(devices_.size()); }
  at::Device device(int rank) const { return devices_[rank]; }

  // Calls NCCL with the rank's handle, inside one ncclGroup, when all ranks have come to the
  // operation; returns when NCCL has accepted the work of all (RankMeeting::Together). An error
  // ends the group. Called once per operation.
  absl::Status Call(int rank, const RankCall& call, absl::FunctionRef<NcclResult(NcclComm&)> body);
  // Lets the watchdog watch the rank's last Call until `done`. Both events have timing.
  void Watch(int rank, CollectiveOp op, const RankCall& call, std::shared_ptr<c10::Event> begin,
             std::shared_ptr<c10::Event> done);

  // Ends the group because `rank` failed with `why`; -1: no single rank. Only the first call
  // counts.
  void End(int rank, const absl::Status& why);
  // OK while the group works; otherwise the status that the operation must return.
  absl::Status Ended(const RankCall& call) const { return meeting_.Check(call); }

 private:
  struct Handle {
    absl::Mutex mu;
    std::unique_ptr<NcclComm> comm ABSL_GUARDED_BY(mu);
  };
  struct UnderWay {
    int rank = 0;
    CollectiveOp op = {};
    std::string operation;
    std::shared_ptr<c10::Event> begin;
    std::shared_ptr<c10::Event> done;
    absl::Duration start;
  };

  void WatchLoop();
  void CheckHandles();
  void CheckUnderWay();
  void CountTime(const UnderWay& operation) const;
  absl::Status Late(const UnderWay& operation) const;
  absl::Status StatusOf(NcclResult result, absl::string_view what) const;
  void AbortHandles();
  absl::Status Enqueue(Handle& handle, const RankCall& call,
                       absl::FunctionRef<NcclResult(NcclComm&)> body);
  absl::Status Settle(Handle& handle, NcclResult result, const RankCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(handle.mu);

  const std::shared_ptr<Nccl> nccl_;
  const std::vector<at::Device> devices_;
  const NcclOptions options_;
  std::vector<std::unique_ptr<Handle>> handles_;
  RankMeeting meeting_;  // has the group's end

  absl::Mutex mu_;
  std::list<UnderWay> under_way_ ABSL_GUARDED_BY(mu_);
  SteadyNotification stop_;
  std::thread watch_;
};

}  // namespace distro::worker
