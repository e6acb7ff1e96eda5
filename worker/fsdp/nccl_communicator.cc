#include "worker/fsdp/nccl_communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "worker/fsdp/collective_checks.h"
#include "worker/fsdp/nccl_group.h"
#include "worker/fsdp/transfers.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {
namespace {

constexpr absl::Duration kWaitInterval = absl::Microseconds(20);  // of a host that waits

char* At(const at::Tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.data_ptr()) +
         element * static_cast<int64_t>(tensor.element_size());
}

absl::Status CheckTravels(const absl::Status& arguments, at::ScalarType type) {
  if (!arguments.ok() || type == at::kFloat || type == at::kBFloat16) return arguments;
  return absl::InvalidArgumentError(
      absl::StrCat("tensors of ", c10::toString(type), "; f32 and bf16 travel between GPUs"));
}

// Whether every rank has the same number of elements, and some.
bool AreEqual(absl::Span<const int64_t> cuts) {
  for (size_t rank = 1; rank + 1 < cuts.size(); ++rank) {
    if (cuts[rank + 1] - cuts[rank] != cuts[1]) return false;
  }
  return cuts[1] > 0;
}

// The first error of several calls.
void Merge(NcclResult* all, NcclResult one) {
  if (*all == NcclResult::kSuccess || *all == NcclResult::kInProgress) *all = one;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(int rank, std::shared_ptr<NcclGroup> group)
      : rank_(rank),
        group_(std::move(group)),
        device_(group_->device(rank)),
        guard_(device_.type()),
        stream_(guard_.getStreamFromGlobalPool(device_, /*isHighPriority=*/true)) {}

  ~NcclCommunicator() override { group_->End(rank_, absl::CancelledError("it left the group")); }

  int rank() const override { return rank_; }
  int ranks() const override { return group_->ranks(); }

  absl::StatusOr<Transfer> StartAllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                          const at::Tensor& shard,
                                          const at::Tensor& whole) override {
    return Start(
        CollectiveOp::kAllGather, CallOf("all-gather", what, cuts),
        CheckTravels(CheckAllGather(rank_, ranks(), cuts, shard, whole), whole.scalar_type()),
        [&](const RankCall& call) {
          return group_->Call(
              rank_, call, [&](NcclComm& comm) { return GatherRanges(cuts, shard, whole, comm); });
        });
  }

  absl::StatusOr<Transfer> StartReduceScatter(absl::string_view what,
                                              absl::Span<const int64_t> cuts,
                                              const at::Tensor& part, at::ScalarType part_type,
                                              Accumulation accumulation,
                                              const at::Tensor& sum) override {
    return Start(CollectiveOp::kReduceScatter, CallOf("reduce-scatter", what, cuts),
                 CheckReduceScatter(rank_, ranks(), cuts, part, part_type, sum),
                 [&](const RankCall& call) {
                   return Reduce(call, cuts, part, part_type, accumulation, sum);
                 });
  }

  absl::StatusOr<Transfer> StartAllToAll(absl::string_view what, absl::Span<const int64_t> counts,
                                         const at::Tensor& send,
                                         const at::Tensor& receive) override {
    return Start(
        CollectiveOp::kAllToAll, CallOf("all-to-all", what, counts),
        CheckTravels(CheckAllToAll(rank_, ranks(), counts, send, receive), send.scalar_type()),
        [&](const RankCall& call) {
          return group_->Call(rank_, call, [&](NcclComm& comm) {
            return ExchangeParts(counts, send, receive, comm);
          });
        });
  }

  absl::Status Wait(Transfer transfer) override {
    DISTRO_ASSIGN_OR_RETURN(const UnderWay under_way, transfers_.Take(transfer));
    return WaitOnStream(under_way);
  }

  // A byte of each rank comes to everyone.
  absl::Status Barrier(absl::string_view what) override {
    return CatchTorch("barrier", [&]() -> absl::Status {
      const at::Tensor bytes = at::zeros({ranks()}, at::TensorOptions(at::kByte).device(device_));
      DISTRO_ASSIGN_OR_RETURN(const Transfer transfer,
                              Start(CollectiveOp::kBarrier, CallOf("barrier", what, {}),
                                    absl::OkStatus(), [&](const RankCall& call) {
                                      return group_->Call(rank_, call, [&](NcclComm& comm) {
                                        return comm.AllGather(At(bytes, rank_), bytes.data_ptr(), 1,
                                                              at::kByte, stream_);
                                      });
                                    }));
      return WaitOnHost(transfer);
    });
  }

  absl::Status Check(absl::string_view what) const override {
    return group_->Ended(CallOf("check", what, {}));
  }

  void Abort(const absl::Status& why) override { group_->End(rank_, why); }

 private:
  struct UnderWay {
    RankCall call;
    std::shared_ptr<c10::Event> done;
  };
  using Enqueue = absl::FunctionRef<absl::Status(const RankCall& call)>;

  static RankCall CallOf(absl::string_view operation, absl::string_view what,
                         absl::Span<const int64_t> cuts) {
    return {.operation = operation,
            .what = std::string(what),
            .cuts = std::vector<int64_t>(cuts.begin(), cuts.end())};
  }

  // Enqueues on this communicator's stream, after the work already on the caller's stream.
  absl::StatusOr<Transfer> Start(CollectiveOp op, const RankCall& call,
                                 const absl::Status& arguments, Enqueue enqueue) {
    absl::Status status = arguments;
    Transfer transfer;
    if (status.ok()) {
      status = CatchTorch(call.Describe(), [&]() -> absl::Status {
        const c10::DeviceGuard guard(device_);
        c10::Event before(device_.type());
        before.record(guard_.getStream(device_));
        before.block(stream_);
        const auto begin = RecordTime();
        DISTRO_RETURN_IF_ERROR(enqueue(call));
        auto done = RecordTime();
        group_->Watch(rank_, op, call, begin, done);
        transfer = transfers_.Add({.call = call, .done = std::move(done)});
        return absl::OkStatus();
      });
    }
    if (status.ok()) return transfer;
    return Failed(status);
  }

  // NCCL gathers equal ranges itself. Of others there is a broadcast each, in one group
  // (docs/decisions/0029).
  NcclResult GatherRanges(absl::Span<const int64_t> cuts, const at::Tensor& shard,
                          const at::Tensor& whole, NcclComm& comm) {
    // Every rank decides alike: the meeting has compared the cuts, and nothing else counts here.
    if (AreEqual(cuts)) {
      return comm.AllGather(At(shard, 0), At(whole, 0), cuts[1], whole.scalar_type(), stream_);
    }
    NcclResult result = NcclResult::kSuccess;
    for (int root = 0; root < ranks(); ++root) {
      const int64_t count = cuts[root + 1] - cuts[root];
      if (count == 0) continue;
      char* const place = At(whole, cuts[root]);
      Merge(&result, comm.Broadcast(root == rank_ ? At(shard, 0) : place, place, count,
                                    whole.scalar_type(), root, stream_));
    }
    return result;
  }

  NcclResult ExchangeParts(absl::Span<const int64_t> counts, const at::Tensor& send,
                           const at::Tensor& receive, NcclComm& comm) {
    const std::vector<int64_t> to = SendCuts(rank_, ranks(), counts);
    const std::vector<int64_t> from = ReceiveCuts(rank_, ranks(), counts);
    const at::ScalarType type = send.scalar_type();
    NcclResult result = NcclResult::kSuccess;
    for (int other = 0; other < ranks(); ++other) {
      const int64_t sent = to[other + 1] - to[other];
      const int64_t received = from[other + 1] - from[other];
      if (sent > 0) Merge(&result, comm.Send(At(send, to[other]), sent, type, other, stream_));
      if (received > 0)
        Merge(&result, comm.Recv(At(receive, from[other]), received, type, other, stream_));
    }
    return result;
  }

  absl::Status Reduce(const RankCall& call, absl::Span<const int64_t> cuts, const at::Tensor& part,
                      at::ScalarType part_type, Accumulation accumulation, const at::Tensor& sum) {
    const at::NoGradGuard no_grad;
    const c10::StreamGuard on_stream(stream_);
    const auto options = at::TensorOptions(part_type).device(device_);
    const at::Tensor nothing =
        part.defined() ? at::Tensor() : at::zeros({ZerosNeeded(cuts)}, options);
    // What is added to the sum, or sent as bf16, needs a place of its own first.
    const bool direct = accumulation == Accumulation::kStore && part_type == at::kFloat;
    const at::Tensor reduced = direct ? sum : at::empty({sum.numel()}, options);
    DISTRO_RETURN_IF_ERROR(group_->Call(rank_, call, [&](NcclComm& comm) {
      return ReduceRanges(cuts, part, nothing, reduced, comm);
    }));
    if (direct || sum.numel() == 0) return absl::OkStatus();
    // On the guard's stream, behind the reduction.
    at::Tensor target = sum.variable_data();
    accumulation == Accumulation::kStore ? target.copy_(reduced) : target.add_(reduced);
    return absl::OkStatus();
  }

  // As GatherRanges. `nothing`: zeros for a rank without a part.
  NcclResult ReduceRanges(absl::Span<const int64_t> cuts, const at::Tensor& part,
                          const at::Tensor& nothing, const at::Tensor& reduced, NcclComm& comm) {
    const at::ScalarType type = reduced.scalar_type();
    if (AreEqual(cuts)) {
      return comm.ReduceScatter(At(part.defined() ? part : nothing, 0), At(reduced, 0), cuts[1],
                                type, stream_);
    }
    NcclResult result = NcclResult::kSuccess;
    for (int root = 0; root < ranks(); ++root) {
      const int64_t count = cuts[root + 1] - cuts[root];
      if (count == 0) continue;
      const char* const from = part.defined() ? At(part, cuts[root]) : At(nothing, 0);
      Merge(&result, comm.Reduce(from, root == rank_ ? At(reduced, 0) : nullptr, count, type, root,
                                 stream_));
    }
    return result;
  }

  // All of the flat for one call, or the longest range for a call each.
  int64_t ZerosNeeded(absl::Span<const int64_t> cuts) const {
    return AreEqual(cuts) ? cuts.back() : LongestRange(cuts);
  }

  // An event with the time, after what this communicator's stream has.
  std::shared_ptr<c10::Event> RecordTime() const {
    auto event = std::make_shared<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    event->record(stream_);
    return event;
  }

  // Polls instead of waiting on the device, where the thread could not be woken.
  absl::Status WaitOnHost(Transfer transfer) {
    DISTRO_ASSIGN_OR_RETURN(const UnderWay under_way, transfers_.Take(transfer));
    for (;;) {
      const absl::StatusOr<bool> done = IsDone(*under_way.done, under_way.call.Describe());
      if (!done.ok()) return Failed(done.status());
      if (*done || !group_->Ended(under_way.call).ok()) return WaitOnStream(under_way);
      absl::SleepFor(kWaitInterval);
    }
  }

  // What the caller's stream of this rank's device is given next comes after the operation; also
  // after one that was aborted, whose memory the caller frees.
  absl::Status WaitOnStream(const UnderWay& under_way) {
    const absl::Status status = CatchTorch(under_way.call.Describe(), [&] {
      under_way.done->block(guard_.getStream(device_));
      return absl::OkStatus();
    });
    return status.ok() ? group_->Ended(under_way.call) : Failed(status);
  }

  absl::Status Failed(const absl::Status& why) {
    group_->End(rank_, why);
    return why;
  }

  const int rank_;
  const std::shared_ptr<NcclGroup> group_;
  const at::Device device_;
  const c10::impl::VirtualGuardImpl guard_;
  const c10::Stream stream_;
  Transfers<UnderWay> transfers_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> MakeNcclCommunicators(
    std::shared_ptr<Nccl> nccl, const std::vector<at::Device>& devices,
    const NcclOptions& options) {
  using Communicators = std::vector<std::unique_ptr<Communicator>>;
  return CatchTorch("NCCL", [&]() -> absl::StatusOr<Communicators> {
    const auto group = std::make_shared<NcclGroup>(std::move(nccl), devices, options);
    DISTRO_RETURN_IF_ERROR(group->Connect());
    Communicators communicators;
    for (int rank = 0; rank < group->ranks(); ++rank) {
      communicators.push_back(std::make_unique<NcclCommunicator>(rank, group));
    }
    return communicators;
  });
}

}  // namespace distro::worker
