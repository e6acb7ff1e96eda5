#include "common/client/await_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_cond_var.h"
#include "common/net/rpc/status.h"

namespace distro {

absl::Status AwaitCall(grpc::ClientContext* context, absl::Duration limit,
                       absl::FunctionRef<void(AnswerTaker)> begin) {
  grpc::Status answer;
  SteadyNotification done;
  begin([&](grpc::Status ended) {
    answer = std::move(ended);
    done.Notify();
  });
  if (done.WaitFor(limit)) return FromGrpcStatus(answer);
  context->TryCancel();
  done.WaitFor(absl::InfiniteDuration());
  if (answer.error_code() != grpc::StatusCode::CANCELLED) return FromGrpcStatus(answer);
  return absl::DeadlineExceededError(
      absl::StrCat("no answer within ", absl::FormatDuration(limit)));
}

}  // namespace distro
