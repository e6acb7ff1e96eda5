#include "common/client/await_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/steady_cond_var.h"
#include "common/net/rpc/status.h"

namespace distro {
namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(100);

}  // namespace

absl::Status AwaitCall(grpc::ClientContext* context, absl::Duration limit,
                       absl::FunctionRef<void(AnswerTaker)> begin,
                       const std::function<bool()>& wanted) {
  grpc::Status answer;
  SteadyNotification done;
  begin([&](grpc::Status ended) {
    answer = std::move(ended);
    done.Notify();
  });
  const absl::Duration end = Clock::Real()->MonotonicNow() + limit;
  bool late = false;
  while (!done.WaitFor(kSlice)) {
    late = Clock::Real()->MonotonicNow() >= end;
    if (late || (wanted != nullptr && !wanted())) context->TryCancel();
  }
  if (!late || answer.error_code() != grpc::StatusCode::CANCELLED) return FromGrpcStatus(answer);
  return absl::DeadlineExceededError(
      absl::StrCat("no answer within ", absl::FormatDuration(limit)));
}

}  // namespace distro
