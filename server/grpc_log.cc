#include "server/grpc_log.h"

#include <iostream>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpc/support/log.h"

namespace distro::server {
namespace {

constexpr int kLinesOfMinute = 20;

// gRPC gives its function no place for data of our own: hence the statics.
void Write(gpr_log_func_args* line) {
  static absl::Mutex mu(absl::kConstInit);
  static absl::Time minute ABSL_GUARDED_BY(mu);
  static int written ABSL_GUARDED_BY(mu) = 0;
  absl::MutexLock lock(&mu);
  if (const absl::Time now = absl::Now(); now - minute > absl::Minutes(1)) {
    minute = now;
    written = 0;
  }
  if (++written <= kLinesOfMinute) std::cerr << "gRPC: " << line->message << "\n";
}

}  // namespace

void LimitGrpcLog() { gpr_set_log_function(&Write); }

}  // namespace distro::server
