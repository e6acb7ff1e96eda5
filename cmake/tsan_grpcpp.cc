// Tells the thread sanitizer that a server reactor's OnDone comes after all its other reactions,
// and OnCancel in between. Linked into every program of the tsan preset; the counterpart of
// tsan_grpc.cc for the callback API.
//
// Debian's libgrpc++ is not instrumented and hands OnDone and OnCancel to threads of its own, so
// that the destruction of a reactor would be reported as a race with its last read or write. The
// definitions below replace those of libgrpc++ 1.51 and do the same on instrumented threads: the
// count of outstanding reactions makes the order visible.
#include <grpcpp/support/server_callback.h>

#include <thread>

namespace grpc::internal {

void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  (void)callbacks_outstanding_.load(std::memory_order_acquire);
  if (inline_ondone) {
    CallOnDone();
  } else {
    std::thread([this] { CallOnDone(); }).detach();
  }
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  if (reactor->InternalInlineable()) {
    reactor->OnCancel();
    return;
  }
  Ref();
  std::thread([this, reactor] {
    reactor->OnCancel();
    MaybeDone(/*inline_ondone=*/true);
  }).detach();
}

}  // namespace grpc::internal
