#include "worker/fsdp/thread_group.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

std::optional<at::ScalarType> TypeOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.scalar_type();
}

}  // namespace

std::string RankCall::Describe() const { return absl::StrCat(operation, " \"", what, "\""); }

bool RankCall::Matches(const RankCall& other) const {
  const bool types =
      !tensor.defined() || !other.tensor.defined() || TypeOf(tensor) == TypeOf(other.tensor);
  return operation == other.operation && what == other.what && cuts == other.cuts &&
         detail == other.detail && types;
}

RankMeeting::RankMeeting(int ranks, const ThreadGroupOptions& options)
    : ranks_(ranks), options_(options), calls_(ranks), present_(ranks, false) {}

int RankMeeting::waiting() const {
  absl::MutexLock lock(&mu_);
  return waiting_;
}

void RankMeeting::CheckWatchdog() {
  absl::MutexLock lock(&mu_);
  changed_.SignalAll();
}

absl::StatusOr<std::shared_ptr<const RankCalls>> RankMeeting::Arrive(int rank, RankCall call) {
  absl::MutexLock lock(&mu_);
  calls_[rank] = call;
  DISTRO_RETURN_IF_ERROR(Meet(rank, call, "did not arrive"));
  return agreed_;
}

absl::Status RankMeeting::Depart(int rank, const RankCall& call) {
  absl::MutexLock lock(&mu_);
  calls_[rank] = {};
  return Meet(rank, call, "did not finish");
}

absl::Status RankMeeting::Together(int rank, const RankCall& call,
                                   absl::FunctionRef<absl::Status()> enqueue) {
  DISTRO_RETURN_IF_ERROR(Arrive(rank, call).status());
  const absl::Status status = enqueue();
  if (status.ok()) return Depart(rank, call);
  End(rank, status);
  return status;
}

absl::Status RankMeeting::Meet(int rank, const RankCall& call, absl::string_view not_yet) {
  if (!end_.ok()) return Ended(call);
  present_[rank] = true;
  const uint64_t meeting = meetings_;
  if (std::find(present_.begin(), present_.end(), false) == present_.end()) Agree();
  const absl::Duration start = options_.clock->MonotonicNow();
  while (meetings_ == meeting && end_.ok()) {
    const absl::Duration left = options_.watchdog - (options_.clock->MonotonicNow() - start);
    if (left <= absl::ZeroDuration()) {
      end_ = absl::DeadlineExceededError(absl::StrCat(call.Describe(), ": ", Absent(), " ", not_yet,
                                                      " within ",
                                                      absl::FormatDuration(options_.watchdog)));
      changed_.SignalAll();
      break;
    }
    ++waiting_;
    changed_.WaitFor(&mu_, left, [&] {
      mu_.AssertHeld();
      return meetings_ != meeting || !end_.ok() ||
             options_.clock->MonotonicNow() - start >= options_.watchdog;
    });
    --waiting_;
  }
  return meetings_ > meeting ? absl::OkStatus() : Ended(call);
}

// All ranks are present: completes the meeting, or ends the group if their operations differ.
void RankMeeting::Agree() {
  for (int rank = 1; rank < ranks_ && end_.ok(); ++rank) {
    if (calls_[rank].Matches(calls_[0])) continue;
    end_ = absl::InternalError(absl::StrCat("rank ", rank, " called ", calls_[rank].Describe(),
                                            " while rank 0 called ", calls_[0].Describe()));
  }
  if (end_.ok()) {
    agreed_ = std::make_shared<const RankCalls>(calls_);
    present_.assign(ranks_, false);
    ++meetings_;
  }
  changed_.SignalAll();
}

std::string RankMeeting::Absent() const {
  std::vector<std::string> absent;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!present_[rank]) absent.push_back(absl::StrCat("rank ", rank));
  }
  return absl::StrJoin(absent, " and ");
}

absl::Status RankMeeting::Ended(const RankCall& call) const {
  if (failed_rank_ >= 0) {
    return absl::AbortedError(
        absl::StrCat(call.Describe(), ": rank ", failed_rank_, " failed: ", end_.message()));
  }
  if (absl::StrContains(end_.message(), call.Describe())) return end_;
  return absl::Status(end_.code(), absl::StrCat(call.Describe(), ": ", end_.message()));
}

absl::Status RankMeeting::Check(const RankCall& call) const {
  absl::MutexLock lock(&mu_);
  return end_.ok() ? absl::OkStatus() : Ended(call);
}

void RankMeeting::End(int rank, const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (!end_.ok()) return;
  end_ = why;
  failed_rank_ = rank;
  changed_.SignalAll();
}

}  // namespace distro::worker
