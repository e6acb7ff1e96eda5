#include "worker/fsdp/thread_communicator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/fsdp/collective_checks.h"
#include "worker/fsdp/thread_group.h"
#include "worker/fsdp/transfers.h"

namespace distro::worker {
namespace {

// Small enough that the parts of a chunk stay in a core's cache while they are summed.
constexpr int64_t kChunkElements = int64_t{1} << 15;

// Waits until the work on the caller's stream is done; on a CPU it always is.
void FinishStream(const at::Device& device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

void SumParts(const RankCalls& calls, int64_t offset, Accumulation accumulation, at::Tensor sum,
              const at::Tensor& own) {
  bool store = accumulation == Accumulation::kStore;
  for (const RankCall& call : calls) {
    if (!call.tensor.defined()) continue;
    at::Tensor piece = call.tensor.variable_data().narrow(0, offset, sum.numel());
    if (own.defined() && piece.data_ptr() == sum.data_ptr()) piece = own;
    store ? sum.copy_(piece) : sum.add_(piece);
    store = false;
  }
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, std::shared_ptr<RankMeeting> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}
  ~ThreadCommunicator() override {
    meeting_->End(rank_, absl::CancelledError("it left the group"));
  }

  int rank() const override { return rank_; }
  int ranks() const override { return meeting_->ranks(); }

  absl::StatusOr<Transfer> StartAllGather(absl::string_view what, absl::Span<const int64_t> cuts,
                                          const at::Tensor& shard,
                                          const at::Tensor& whole) override {
    RankCall call = Call("all-gather", what, cuts);
    call.tensor = shard;
    return Do(call, CheckAllGather(rank_, ranks(), cuts, shard, whole), whole.device(),
              [&](const RankCalls& calls) {
                for (int rank = 0; rank < ranks(); ++rank) {
                  at::Tensor place =
                      whole.variable_data().narrow(0, cuts[rank], cuts[rank + 1] - cuts[rank]);
                  const at::Tensor piece = calls[rank].tensor.variable_data();
                  if (piece.numel() > 0 && piece.data_ptr() != place.data_ptr()) place.copy_(piece);
                }
                return absl::OkStatus();
              });
  }

  absl::StatusOr<Transfer> StartReduceScatter(absl::string_view what,
                                              absl::Span<const int64_t> cuts,
                                              const at::Tensor& part, at::ScalarType part_type,
                                              Accumulation accumulation,
                                              const at::Tensor& sum) override {
    RankCall call = Call("reduce-scatter", what, cuts);
    call.detail = static_cast<int>(accumulation);
    call.tensor = part;
    return Do(call, CheckReduceScatter(rank_, ranks(), cuts, part, part_type, sum), sum.device(),
              [&](const RankCalls& calls) { return Reduce(calls, cuts, part, accumulation, sum); });
  }

  absl::StatusOr<Transfer> StartAllToAll(absl::string_view what, absl::Span<const int64_t> counts,
                                         const at::Tensor& send,
                                         const at::Tensor& receive) override {
    RankCall call = Call("all-to-all", what, counts);
    call.tensor = send;
    return Do(call, CheckAllToAll(rank_, ranks(), counts, send, receive), receive.device(),
              [&](const RankCalls& calls) {
                CopyParts(calls, counts, receive);
                return absl::OkStatus();
              });
  }

  // The operation was done when Start returned.
  absl::Status Wait(Transfer transfer) override { return transfers_.Take(transfer).status(); }

  absl::Status Barrier(absl::string_view what) override {
    DISTRO_ASSIGN_OR_RETURN(const Transfer transfer,
                            Do(Call("barrier", what, {}), absl::OkStatus(), at::kCPU,
                               [](const RankCalls&) { return absl::OkStatus(); }));
    return Wait(transfer);
  }

  absl::Status Check(absl::string_view what) const override {
    return meeting_->Check(Call("check", what, {}));
  }

  void Abort(const absl::Status& why) override { meeting_->End(rank_, why); }

 private:
  struct Done {};
  using Share = std::function<absl::Status(const RankCalls& calls)>;

  static RankCall Call(absl::string_view operation, absl::string_view what,
                       absl::Span<const int64_t> cuts) {
    RankCall call;
    call.operation = operation;
    call.what = std::string(what);
    call.cuts.assign(cuts.begin(), cuts.end());
    return call;
  }

  // Meets the others, does this rank's share, meets them again. A failure here ends the group.
  absl::StatusOr<Transfer> Do(const RankCall& call, const absl::Status& arguments,
                              const at::Device& device, const Share& share) {
    if (!arguments.ok()) return Fail(call, arguments);
    absl::Status own = CatchTorch("stream", [&] {
      FinishStream(device);
      return absl::OkStatus();
    });
    if (!own.ok()) return Fail(call, own);
    DISTRO_ASSIGN_OR_RETURN(auto calls, meeting_->Arrive(rank_, call));
    own = CatchTorch("share", [&] {
      const at::NoGradGuard no_grad;
      DISTRO_RETURN_IF_ERROR(share(*calls));
      FinishStream(device);
      return absl::OkStatus();
    });
    if (!own.ok()) return Fail(call, own);
    calls.reset();  // the others' tensors are theirs alone again
    DISTRO_RETURN_IF_ERROR(meeting_->Depart(rank_, call));
    return transfers_.Add(Done{});
  }

  absl::Status Fail(const RankCall& call, const absl::Status& why) {
    const absl::Status status(why.code(), absl::StrCat(call.Describe(), ": ", why.message()));
    meeting_->End(rank_, status);
    return status;
  }

  absl::Status Reduce(const RankCalls& calls, absl::Span<const int64_t> cuts,
                      const at::Tensor& part, Accumulation accumulation, const at::Tensor& sum) {
    if (std::none_of(calls.begin(), calls.end(),
                     [](const RankCall& call) { return call.tensor.defined(); })) {
      return absl::InvalidArgumentError("no rank has a part");
    }
    const int64_t elements = sum.numel();
    const int64_t chunk = sum.is_cpu() ? kChunkElements : std::max<int64_t>(elements, 1);
    const bool in_place = elements > 0 && part.defined() && part.scalar_type() == at::kFloat &&
                          part.data_ptr<float>() + cuts[rank_] == sum.data_ptr<float>();
    for (int64_t first = 0; first < elements; first += chunk) {
      const at::Tensor piece =
          sum.variable_data().narrow(0, first, std::min(chunk, elements - first));
      SumParts(calls, cuts[rank_] + first, accumulation, piece,
               in_place ? piece.clone() : at::Tensor());
    }
    return absl::OkStatus();
  }

  void CopyParts(const RankCalls& calls, absl::Span<const int64_t> counts,
                 const at::Tensor& receive) {
    const std::vector<int64_t> places = ReceiveCuts(rank_, ranks(), counts);
    for (int from = 0; from < ranks(); ++from) {
      const int64_t count = places[from + 1] - places[from];
      const int64_t begin = SendCuts(from, ranks(), counts)[rank_];
      if (count == 0) continue;
      receive.variable_data()
          .narrow(0, places[from], count)
          .copy_(calls[from].tensor.variable_data().narrow(0, begin, count));
    }
  }

  const int rank_;
  const std::shared_ptr<RankMeeting> meeting_;
  Transfers<Done> transfers_;
};

class Group final : public ThreadGroup {
 public:
  Group(int ranks, const ThreadGroupOptions& options)
      : meeting_(std::make_shared<RankMeeting>(ranks, options)) {}

  std::vector<std::unique_ptr<Communicator>> TakeCommunicators() override {
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (int rank = 0; rank < meeting_->ranks(); ++rank) {
      communicators.push_back(std::make_unique<ThreadCommunicator>(rank, meeting_));
    }
    return communicators;
  }
  int waiting() const override { return meeting_->waiting(); }
  void CheckWatchdog() override { meeting_->CheckWatchdog(); }

 private:
  const std::shared_ptr<RankMeeting> meeting_;
};

}  // namespace

std::shared_ptr<ThreadGroup> MakeThreadGroup(int ranks, const ThreadGroupOptions& options) {
  return std::make_shared<Group>(ranks, options);
}

}  // namespace distro::worker
