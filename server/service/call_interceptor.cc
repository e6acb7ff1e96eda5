#include "server/service/call_interceptor.h"

#include <memory>
#include <utility>
#include <vector>

#include "grpcpp/support/server_interceptor.h"

namespace distro::server {
namespace {

namespace ge = grpc::experimental;

// Of one call.
class CallInterceptor final : public ge::Interceptor {
 public:
  CallInterceptor(int method, CallObserver* observer, const Clock* clock)
      : method_(method), observer_(observer), clock_(clock), start_(clock->MonotonicNow()) {
    observer_->OnCallStarted(method_);
  }
  ~CallInterceptor() override { Handled(grpc::StatusCode::CANCELLED); }

  void Intercept(ge::InterceptorBatchMethods* batch) override {
    using Point = ge::InterceptionHookPoints;
    if (batch->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE) &&
        batch->GetRecvMessage() != nullptr) {
      observer_->OnMessageReceived(method_);
    }
    if (batch->QueryInterceptionHookPoint(Point::PRE_SEND_MESSAGE))
      observer_->OnMessageSent(method_);
    if (batch->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS))
      Handled(batch->GetSendStatus().error_code());
    batch->Proceed();
  }

 private:
  // Reports the end once. A call destroyed before it has a status was cancelled.
  void Handled(int code) {
    if (std::exchange(handled_, true)) return;
    observer_->OnCallHandled(method_, code, clock_->MonotonicNow() - start_);
  }

  const int method_;
  CallObserver* const observer_;
  const Clock* const clock_;
  const absl::Duration start_;
  bool handled_ = false;
};

class Factory final : public ge::ServerInterceptorFactoryInterface {
 public:
  Factory(CallObserver* observer, const Clock* clock) : observer_(observer), clock_(clock) {}
  ge::Interceptor* CreateServerInterceptor(ge::ServerRpcInfo* info) override {
    const int method = observer_->MethodOf(info->method());
    return method < 0 ? nullptr : new CallInterceptor(method, observer_, clock_);
  }

 private:
  CallObserver* const observer_;
  const Clock* const clock_;
};

}  // namespace

void ObserveCalls(CallObserver* observer, const Clock* clock, grpc::ServerBuilder* builder) {
  std::vector<std::unique_ptr<ge::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<Factory>(observer, clock));
  builder->experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace distro::server
