// Bytes transferred and calls retried by an exchange since its start. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "distro/v1/telemetry.pb.h"

namespace distro {

// Calls that are retried when they fail.
enum class RetriedRpc { kJoin, kHeartbeat, kUpload, kSnapshot };
inline constexpr int kRetriedRpcs = 4;
absl::string_view RetriedRpcName(RetriedRpc rpc);

// Status codes of retried calls: a small closed set, the last of which is "other".
inline constexpr int kRetryCodes = 8;
int RetryCodeIndex(absl::StatusCode code);
absl::string_view RetryCodeName(int index);

struct TransferStats {
  uint64_t sent_payload_bytes = 0;
  uint64_t received_payload_bytes = 0;
  uint64_t received_snapshot_bytes = 0;
  uint64_t sent_control_bytes = 0;      // whole messages: joins, heartbeats, headers of uploads
  uint64_t received_control_bytes = 0;  // their answers, and frames that open or commit rounds
  std::array<std::array<uint64_t, kRetryCodes>, kRetriedRpcs> retries{};
  uint64_t mirror_bytes = 0;     // of results and snapshots, from mirrors
  uint64_t mirror_failures = 0;  // requests to mirrors
  uint64_t reconnects = 0;       // subscriptions that were reopened
  absl::Duration upload_time;    // with upload bytes in flight: first write to last acknowledgement
  absl::Duration download_time;  // with result frames in flight
  v1::DurationHistogram upload_durations;    // of each update
  v1::DurationHistogram download_durations;  // of each round's result
  // The rate of the fastest recent transfer; not set until one was large enough.
  std::optional<double> upload_bytes_per_second;
  std::optional<double> download_bytes_per_second;
  std::optional<absl::Duration> round_trip;       // of the last heartbeat that was answered
  absl::Time last_report = absl::InfinitePast();  // when that was; wall time
  std::optional<absl::Duration> last_answer;      // the same, monotonic
  // Time waited in Next: with the worker's own upload in flight, with a result in flight, and time
  // not yet attributed.
  absl::Duration wait_in_upload;
  absl::Duration wait_in_download;
  absl::Duration wait_undecided;

  // All retries together.
  uint64_t TotalRetries() const;
};

}  // namespace distro
