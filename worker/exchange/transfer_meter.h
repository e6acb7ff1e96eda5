// Counts what an exchange moved. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/exchange/transfer_stats.h"

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
  void AddRetry(RetriedRpc rpc, absl::StatusCode code) {
    Add([&](TransferStats& s) { ++s.retries[static_cast<int>(rpc)][RetryCodeIndex(code)]; });
  }
  void AddReconnect() {
    Add([](TransferStats& s) { ++s.reconnects; });
  }
  // Bytes that came as fast as the link and the aggregator could bring them, and the time that took. What is too little to
  // tell bandwidth from latency is added up until it is enough.
  void AddBulk(uint64_t bytes, absl::Duration time) {
    absl::MutexLock lock(&mu_);
    bulk_bytes_ += bytes;
    bulk_time_ += time;
    if (bulk_time_ <= absl::ZeroDuration()) return;
    if (bulk_bytes_ < kEnoughBytes && bulk_time_ < kEnoughTime) return;
    const double rate = static_cast<double>(bulk_bytes_) / absl::ToDoubleSeconds(bulk_time_);
    download_bytes_per_second_ = std::max<uint64_t>(1, static_cast<uint64_t>(rate));
    bulk_bytes_ = 0;
    bulk_time_ = absl::ZeroDuration();
  }

  // Of the last bulk download that was enough to tell; 0: there was none.
  uint64_t download_bytes_per_second() const {
    absl::MutexLock lock(&mu_);
    return download_bytes_per_second_;
  }

  TransferStats stats() const {
    absl::MutexLock lock(&mu_);
    return stats_;
  }

 private:
  static constexpr absl::Duration kPause = absl::Milliseconds(250);
  static constexpr uint64_t kEnoughBytes = uint64_t{1} << 20;
  static constexpr absl::Duration kEnoughTime = absl::Seconds(2);

  template <typename F>
  void Add(F change) {
    absl::MutexLock lock(&mu_);
    change(stats_);
  }

  mutable absl::Mutex mu_;
  TransferStats stats_ ABSL_GUARDED_BY(mu_);
  uint64_t bulk_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration bulk_time_ ABSL_GUARDED_BY(mu_);
  uint64_t download_bytes_per_second_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace distro::worker
