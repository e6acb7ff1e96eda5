// Counts what an exchange moved. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/exchange/exchange.h"

namespace distro::worker {

class TransferMeter {
 public:
  void AddSent(uint64_t bytes) {
    Add([&](TransferStats& s) { s.sent_payload_bytes += bytes; });
  }
  void AddUploadTime(absl::Duration time) {
    Add([&](TransferStats& s) { s.upload_time += time; });
  }
  // `since_last` is the time since the frame before, of which a pause counts as kPause at most: results come as segments
  // close, and waiting for other workers is no transfer.
  void AddReceived(uint64_t bytes, absl::Duration since_last) {
    Add([&](TransferStats& s) {
      s.received_payload_bytes += bytes;
      s.download_time += std::min(since_last, kPause);
    });
  }
  void AddRetry() {
    Add([](TransferStats& s) { ++s.retries; });
  }
  void AddReconnect() {
    Add([](TransferStats& s) { ++s.reconnects; });
  }

  TransferStats stats() const {
    absl::MutexLock lock(&mu_);
    return stats_;
  }

 private:
  static constexpr absl::Duration kPause = absl::Milliseconds(250);

  template <typename F>
  void Add(F change) {
    absl::MutexLock lock(&mu_);
    change(stats_);
  }

  mutable absl::Mutex mu_;
  TransferStats stats_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::worker
