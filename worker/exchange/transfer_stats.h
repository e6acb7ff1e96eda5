// What an exchange has moved and repeated since its start. Plain data.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro::worker {

// Calls that are made again when they fail.
enum class RetriedRpc { kJoin, kHeartbeat, kUpload, kSnapshot };
inline constexpr int kRetriedRpcs = 4;
absl::string_view RetriedRpcName(RetriedRpc rpc);

// Status codes of calls that are made again: a small closed set, the last of which is "other".
inline constexpr int kRetryCodes = 8;
int RetryCodeIndex(absl::StatusCode code);
absl::string_view RetryCodeName(int index);

struct TransferStats {
  uint64_t sent_payload_bytes = 0;
  uint64_t received_payload_bytes = 0;
  std::array<std::array<uint64_t, kRetryCodes>, kRetriedRpcs> retries{};
  uint64_t reconnects = 0;       // subscriptions that were opened again
  absl::Duration upload_time;    // with upload bytes in flight: first write to last acknowledgement
  absl::Duration download_time;  // with result frames arriving

  // All retries together.
  uint64_t TotalRetries() const;
};

}  // namespace distro::worker
