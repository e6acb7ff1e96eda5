// A communicator of which one operation fails, for tests of what a rank then does.
#pragma once

#include <set>

#include "absl/status/status.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker::testing {

// A rank's communicator of which one Start fails, after which the group has ended.
class FailingCommunicator final : public Communicator {
 public:
  // The Start number `fails_at`, from 0.
  FailingCommunicator(Communicator* communicator, int fails_at)
      : communicator_(communicator), starts_left_(fails_at) {}

  int rank() const override { return communicator_->rank(); }
  int ranks() const override { return communicator_->ranks(); }

  absl::StatusOr<Transfer> StartAllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                          const at::Tensor& shard,
                                          const at::Tensor& whole) override {
    return Start([&] { return communicator_->StartAllGather(what, cuts, shard, whole); });
  }
  absl::StatusOr<Transfer> StartReduceScatter(absl::string_view what,
                                              absl::Span<const int64_t> cuts,
                                              const at::Tensor& part, at::ScalarType part_type,
                                              Accumulation accumulation,
                                              const at::Tensor& sum) override {
    return Start([&] {
      return communicator_->StartReduceScatter(what, cuts, part, part_type, accumulation, sum);
    });
  }
  absl::StatusOr<Transfer> StartAllToAll(absl::string_view what, absl::Span<const int64_t> counts,
                                         const at::Tensor& send,
                                         const at::Tensor& receive) override {
    return Start([&] { return communicator_->StartAllToAll(what, counts, send, receive); });
  }
  absl::Status Wait(Transfer transfer) override {
    under_way_.erase(transfer.number);
    return communicator_->Wait(transfer);
  }
  absl::Status Barrier(absl::string_view what) override { return communicator_->Barrier(what); }
  absl::Status Check(absl::string_view what) const override { return communicator_->Check(what); }
  void Abort(const absl::Status& why) override { communicator_->Abort(why); }

  bool has_failed() const { return starts_left_ < 0; }
  // Numbers of transfers that were started and not waited for.
  const std::set<int64_t>& under_way() const { return under_way_; }

 private:
  template <typename Operation>
  absl::StatusOr<Transfer> Start(const Operation& operation) {
    if (starts_left_-- == 0) {
      const absl::Status status = absl::UnavailableError("this start fails");
      communicator_->Abort(status);
      return status;
    }
    absl::StatusOr<Transfer> transfer = operation();
    if (transfer.ok()) under_way_.insert(transfer->number);
    return transfer;
  }

  Communicator* const communicator_;
  int starts_left_;
  std::set<int64_t> under_way_;
};

}  // namespace distro::worker::testing
