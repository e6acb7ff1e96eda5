// Measures the bytes that an exchange transfers and the time it takes. Times are monotonic, of one
// clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/client/exchange/transfer_stats.h"
#include "common/net/wire/worker_readings.h"

namespace distro {

// The payload rate of the fastest recent transfer in one direction: a lower bound of the link's
// capacity. Transfers too small to measure bandwidth rather than latency are combined. Not
// thread-safe.
class LinkRate {
 public:
  void Add(uint64_t bytes, absl::Duration time) {
    bytes_ += bytes;
    time_ += time;
    if (bytes_ < kEnoughBytes || time_ < kEnoughTime) return;
    rates_[next_++ % rates_.size()] = static_cast<double>(bytes_) / absl::ToDoubleSeconds(time_);
    bytes_ = 0;
    time_ = absl::ZeroDuration();
  }
  // Not set until enough was transferred.
  std::optional<double> bytes_per_second() const {
    const double fastest = *std::ranges::max_element(rates_);
    return fastest > 0 ? std::optional<double>(fastest) : std::nullopt;
  }

 private:
  static constexpr uint64_t kEnoughBytes = 16 << 10;
  static constexpr absl::Duration kEnoughTime = absl::Milliseconds(1);

  std::array<double, 32> rates_{};  // of the last transfers, a ring
  size_t next_ = 0;
  uint64_t bytes_ = 0;
  absl::Duration time_;
};

// Attributes the training thread's waiting time to its own upload, to a result in flight, or to
// other workers (docs/decisions/0004-time-of-the-training-thread.md). A frame's departure is known
// only when it has arrived. So the most recent part of a wait, up to twice the time that recent
// frames took, stays undecided; decided time never changes.
//
// Times are monotonic. Not thread-safe.
class WaitSplit {
 public:
  void BeginWait(absl::Duration now) {
    waiting_ = true;
    decided_ = now;
  }
  void EndWait(absl::Duration now) {
    if (uploading_) Decide(now, &upload_);
    waiting_ = false;
  }
  void BeginUpload(absl::Duration now) {
    Advance(now);
    uploading_ = true;
    decided_ = std::max(decided_, now);
  }
  void EndUpload(absl::Duration now) {
    if (uploading_) Decide(now, &upload_);
    uploading_ = false;
  }
  // Result bytes were in flight from `since` to `now`.
  void Downloaded(absl::Duration since, absl::Duration now) {
    const absl::Duration took = std::max(now - since, absl::ZeroDuration());
    longest_ = std::max(took, longest_ * 0.95);
    if (uploading_) return Decide(now, &upload_);
    Advance(now);
    decided_ = std::max(decided_, since);
    Decide(now, &download_);
  }

  // Moves the end of the decided time; the three values below are then those at `now`.
  void Advance(absl::Duration now) {
    if (uploading_) return Decide(now, &upload_);
    decided_ = std::max(decided_, now - std::min(2 * longest_, kMostUndecided));
  }
  absl::Duration upload() const { return upload_; }
  absl::Duration download() const { return download_; }
  absl::Duration Undecided(absl::Duration now) const {
    return waiting_ ? std::max(now - decided_, absl::ZeroDuration()) : absl::ZeroDuration();
  }

 private:
  static constexpr absl::Duration kMostUndecided = absl::Seconds(10);

  // Attributes the time up to `now` to `part`, if the thread waits.
  void Decide(absl::Duration now, absl::Duration* part) {
    if (waiting_) *part += std::max(now - decided_, absl::ZeroDuration());
    decided_ = std::max(decided_, now);
  }

  bool waiting_ = false;
  bool uploading_ = false;
  absl::Duration decided_;  // end of the decided part of the current wait
  absl::Duration upload_;
  absl::Duration download_;
  absl::Duration longest_;  // time of the slowest recent frame
};

// Estimates when a frame left its sender, as far as the receiver can tell: after the previous frame
// of the stream arrived, and not before it was made. The offset between the two clocks is taken
// from the fastest frame so far, whose flight time therefore counts as 0. Times are monotonic, of
// each end's clock. Not thread-safe.
class FlightTime {
 public:
  // A frame arrived at `now`; returns when it left. `made_at` is by the sender's clock; not set:
  // the frame existed before the stream.
  absl::Duration Since(std::optional<absl::Duration> made_at, absl::Duration now) {
    absl::Duration since = last_.value_or(now);
    if (made_at) {
      offset_ = std::min(offset_, now - *made_at);
      since = std::max(*made_at + offset_, last_.value_or(-absl::InfiniteDuration()));
    }
    last_ = now;
    return std::min(since, now);
  }
  // The receiver did not read until `now`.
  void Pause(absl::Duration now) { last_ = now; }

 private:
  absl::Duration offset_ = absl::InfiniteDuration();  // clock offset plus the fastest flight
  std::optional<absl::Duration> last_;                // arrival
};

// All measurements of one exchange. Thread-safe.
class TransferMeter {
 public:
  void AddSent(uint64_t bytes) {
    Add([&](TransferStats& s) { s.sent_payload_bytes += bytes; });
  }
  void AddControl(uint64_t sent, uint64_t received) {
    Add([&](TransferStats& s) {
      s.sent_control_bytes += sent;
      s.received_control_bytes += received;
    });
  }
  void AddSnapshot(uint64_t bytes) {
    Add([&](TransferStats& s) { s.received_snapshot_bytes += bytes; });
  }
  // A heartbeat was answered at `now`, which is `wall`, after `round_trip`.
  void AddHeartbeat(absl::Duration round_trip, absl::Duration now, absl::Time wall) {
    Add([&](TransferStats& s) {
      s.round_trip = round_trip;
      s.last_answer = now;
      s.last_report = wall;
    });
  }
  // Update bytes are in flight from `now` on.
  void BeginUpload(absl::Duration now) {
    absl::MutexLock lock(&mu_);
    upload_since_ = now;
    upload_begin_bytes_ = stats_.sent_payload_bytes;
    waits_.BeginUpload(now);
  }
  // No update bytes are in flight. `whole`: all were acknowledged.
  void EndUpload(absl::Duration now, bool whole) {
    absl::MutexLock lock(&mu_);
    const absl::Duration time = now - *upload_since_;
    upload_since_.reset();
    waits_.EndUpload(now);
    stats_.upload_time += time;
    update_upload_time_ += time;
    upload_rate_.Add(stats_.sent_payload_bytes - upload_begin_bytes_, time);
    if (!whole) return;
    AddDuration(update_upload_time_, &stats_.upload_durations);
    update_upload_time_ = absl::ZeroDuration();
  }
  // Bytes of a result arrived at `now`; they were in flight since `since`.
  void AddReceived(uint64_t bytes, absl::Duration since, absl::Duration now) {
    absl::MutexLock lock(&mu_);
    stats_.received_payload_bytes += bytes;
    stats_.download_time += now - since;
    result_download_time_ += now - since;
    download_rate_.Add(bytes, now - since);
    waits_.Downloaded(since, now);
  }
  // A round's result is complete.
  void EndResult() {
    absl::MutexLock lock(&mu_);
    AddDuration(result_download_time_, &stats_.download_durations);
    result_download_time_ = absl::ZeroDuration();
  }
  // The training thread starts, or stops, to wait for the next event at `now`.
  void BeginWait(absl::Duration now) {
    absl::MutexLock lock(&mu_);
    waits_.BeginWait(now);
  }
  void EndWait(absl::Duration now) {
    absl::MutexLock lock(&mu_);
    waits_.EndWait(now);
  }
  void AddRetry(RetriedRpc rpc, absl::StatusCode code) {
    Add([&](TransferStats& s) { ++s.retries[static_cast<int>(rpc)][RetryCodeIndex(code)]; });
  }
  // Of the bytes added elsewhere, so many came from a mirror.
  void AddMirror(uint64_t bytes) {
    Add([&](TransferStats& s) { s.mirror_bytes += bytes; });
  }
  void AddMirrorFailure() {
    Add([](TransferStats& s) { ++s.mirror_failures; });
  }
  void AddReconnect() {
    Add([](TransferStats& s) { ++s.reconnects; });
  }
  // A longer silence between two frames is none of the link: the process was stopped, or an end is
  // gone.
  static constexpr absl::Duration kLongestGap = absl::Seconds(30);
  // Adds bytes that arrived at the full speed of link and aggregator, and their time. Amounts too
  // small to measure bandwidth rather than latency are accumulated.
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

  // The rate of the last bulk download that was large enough; 0 if there was none.
  uint64_t download_bytes_per_second() const {
    absl::MutexLock lock(&mu_);
    return download_bytes_per_second_;
  }

  // Includes transfers and waits in progress at `now`.
  TransferStats stats(absl::Duration now) const {
    absl::MutexLock lock(&mu_);
    TransferStats stats = stats_;
    if (upload_since_) stats.upload_time += std::max(now - *upload_since_, absl::ZeroDuration());
    stats.upload_bytes_per_second = upload_rate_.bytes_per_second();
    stats.download_bytes_per_second = download_rate_.bytes_per_second();
    waits_.Advance(now);
    stats.wait_in_upload = waits_.upload();
    stats.wait_in_download = waits_.download();
    stats.wait_undecided = waits_.Undecided(now);
    return stats;
  }

 private:
  static constexpr uint64_t kEnoughBytes = uint64_t{1} << 20;
  static constexpr absl::Duration kEnoughTime = absl::Seconds(2);

  template <typename F>
  void Add(F change) {
    absl::MutexLock lock(&mu_);
    change(stats_);
  }

  mutable absl::Mutex mu_;
  TransferStats stats_ ABSL_GUARDED_BY(mu_);  // without what stats() adds
  std::optional<absl::Duration> upload_since_ ABSL_GUARDED_BY(mu_);
  uint64_t upload_begin_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration update_upload_time_ ABSL_GUARDED_BY(mu_);  // of an incomplete update
  absl::Duration result_download_time_ ABSL_GUARDED_BY(mu_);
  LinkRate upload_rate_ ABSL_GUARDED_BY(mu_);
  LinkRate download_rate_ ABSL_GUARDED_BY(mu_);
  mutable WaitSplit waits_ ABSL_GUARDED_BY(mu_);
  uint64_t bulk_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration bulk_time_ ABSL_GUARDED_BY(mu_);
  uint64_t download_bytes_per_second_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace distro
