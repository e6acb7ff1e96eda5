// Records the reloads of credentials: "FILE ok" or "FILE error". Thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/auth/tokens/token_store.h"

namespace distro::testing {

class RecordingObserver final : public server::AuthObserver {
 public:
  void OnCallRefused(absl::string_view) override {}
  void OnCredentialsReloaded(absl::string_view file, bool ok) override {
    absl::MutexLock lock(&mu_);
    reloads_.push_back(absl::StrCat(file, ok ? " ok" : " error"));
  }

  // Blocks until `reload` was seen `times` times; false: not within a minute.
  bool Await(absl::string_view reload, int times = 1) {
    absl::MutexLock lock(&mu_);
    const auto seen = [&] {
      mu_.AssertHeld();
      return std::ranges::count(reloads_, reload) >= times;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&seen), absl::Minutes(1));
  }
  std::vector<std::string> reloads() {
    absl::MutexLock lock(&mu_);
    return reloads_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> reloads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::testing
