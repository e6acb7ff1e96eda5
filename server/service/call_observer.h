// What happens to every call of our services, for metrics. Thread-safe, quick.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro::server {

class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // The number by which the other calls name the method with this path ("/package.Service/Method"); -1: it is not one of
  // ours and nobody watches its calls.
  virtual int MethodOf(absl::string_view path) const = 0;
  virtual void OnCallStarted(int method) = 0;
  virtual void OnMessageReceived(int method) = 0;
  virtual void OnMessageSent(int method) = 0;
  // `code` is gRPC's, 0 to 16.
  virtual void OnCallHandled(int method, int code, absl::Duration time) = 0;
};

}  // namespace distro::server
