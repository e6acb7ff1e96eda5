#include "common/client/exchange/transfer_stats.h"

#include <algorithm>
#include <iterator>

namespace distro {
namespace {

struct NamedCode {
  absl::StatusCode code;
  absl::string_view name;
};

constexpr NamedCode kCodes[] = {
    {absl::StatusCode::kUnavailable, "unavailable"},
    {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded"},
    {absl::StatusCode::kResourceExhausted, "resource_exhausted"},
    {absl::StatusCode::kFailedPrecondition, "failed_precondition"},
    {absl::StatusCode::kCancelled, "cancelled"},
    {absl::StatusCode::kInternal, "internal"},
    {absl::StatusCode::kUnknown, "unknown"},
};
static_assert(std::size(kCodes) + 1 == kRetryCodes);

}  // namespace

absl::string_view RetriedRpcName(RetriedRpc rpc) {
  constexpr absl::string_view kNames[kRetriedRpcs] = {"join", "heartbeat", "upload", "snapshot"};
  return kNames[static_cast<int>(rpc)];
}

int RetryCodeIndex(absl::StatusCode code) {
  const auto* found = std::find_if(std::begin(kCodes), std::end(kCodes),
                                   [code](const NamedCode& entry) { return entry.code == code; });
  return static_cast<int>(found - std::begin(kCodes));
}

absl::string_view RetryCodeName(int index) {
  return index < kRetryCodes - 1 ? kCodes[index].name : "other";
}

uint64_t TransferStats::TotalRetries() const {
  uint64_t total = 0;
  for (const auto& of_rpc : retries) {
    for (const uint64_t count : of_rpc) total += count;
  }
  return total;
}

}  // namespace distro
