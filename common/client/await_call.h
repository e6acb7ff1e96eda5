// Waits for the answer of a unary call by the monotonic clock. gRPC measures its own deadlines by
// the calendar (as of 1.51): when the clock is set back by an hour they end an hour late. Blocking;
// thread-safe.
//
//   const absl::Status status = AwaitCall(&context, absl::Seconds(10), [&](AnswerTaker done) {
//     stub->async()->Heartbeat(&context, &request, &response, std::move(done));
//   });
#pragma once

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

namespace distro {

using AnswerTaker = std::function<void(grpc::Status)>;

// `begin` begins the call with `context` and passes its argument on as the callback. Returns when
// the call has ended: with its status, or DeadlineExceeded if there was no answer within `limit`
// and it was cancelled then. `wanted`, which may be empty, is called every 100 ms while it waits;
// false cancels the call.
//
// gRPC's threads for callbacks (1.51) sleep for up to 100 ms when nothing happens, so an answer may
// be seen that much later.
absl::Status AwaitCall(grpc::ClientContext* context, absl::Duration limit,
                       absl::FunctionRef<void(AnswerTaker)> begin,
                       const std::function<bool()>& wanted = nullptr);

}  // namespace distro
