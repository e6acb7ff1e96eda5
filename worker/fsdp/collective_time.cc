#include "worker/fsdp/collective_time.h"

#include <utility>

#include "worker/fsdp/communicator.h"

namespace distro::worker {
namespace {

class TimedCommunicator final : public Communicator {
 public:
  TimedCommunicator(std::unique_ptr<Communicator> communicator,
                    std::shared_ptr<CollectiveTime> time, const Clock* clock)
      : communicator_(std::move(communicator)), time_(std::move(time)), clock_(clock) {}

  int rank() const override { return communicator_->rank(); }
  int ranks() const override { return communicator_->ranks(); }

  absl::StatusOr<Transfer> StartAllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                          const at::Tensor& shard,
                                          const at::Tensor& whole) override {
    return Timed(CollectiveOp::kAllGather,
                 [&] { return communicator_->StartAllGather(what, cuts, shard, whole); });
  }
  absl::StatusOr<Transfer> StartReduceScatter(absl::string_view what,
                                              absl::Span<const int64_t> cuts,
                                              const at::Tensor& part, at::ScalarType part_type,
                                              Accumulation accumulation,
                                              const at::Tensor& sum) override {
    return Timed(CollectiveOp::kReduceScatter, [&] {
      return communicator_->StartReduceScatter(what, cuts, part, part_type, accumulation, sum);
    });
  }
  absl::StatusOr<Transfer> StartAllToAll(absl::string_view what, absl::Span<const int64_t> counts,
                                         const at::Tensor& send,
                                         const at::Tensor& receive) override {
    return Timed(CollectiveOp::kAllToAll,
                 [&] { return communicator_->StartAllToAll(what, counts, send, receive); });
  }
  absl::Status Wait(Transfer transfer) override { return communicator_->Wait(transfer); }
  absl::Status Barrier(absl::string_view what) override {
    return Timed(CollectiveOp::kBarrier, [&] { return communicator_->Barrier(what); });
  }
  absl::Status Check(absl::string_view what) const override { return communicator_->Check(what); }
  void Abort(const absl::Status& why) override { communicator_->Abort(why); }

 private:
  template <typename Operation>
  auto Timed(CollectiveOp op, const Operation& operation) -> decltype(operation()) {
    const absl::Duration begin = clock_->MonotonicNow();
    auto result = operation();
    time_->Add(op, clock_->MonotonicNow() - begin);
    return result;
  }

  const std::unique_ptr<Communicator> communicator_;
  const std::shared_ptr<CollectiveTime> time_;
  const Clock* const clock_;
};

}  // namespace

void CollectiveTime::Add(CollectiveOp op, absl::Duration time) {
  absl::MutexLock lock(&mu_);
  spent_[static_cast<size_t>(op)] += time;
}

TimeByCollective CollectiveTime::spent() const {
  absl::MutexLock lock(&mu_);
  return spent_;
}

std::unique_ptr<Communicator> TimeCommunicator(std::unique_ptr<Communicator> communicator,
                                               std::shared_ptr<CollectiveTime> time,
                                               const Clock* clock) {
  return std::make_unique<TimedCommunicator>(std::move(communicator), std::move(time), clock);
}

}  // namespace distro::worker
