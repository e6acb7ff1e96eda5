// One MeasureLink call without its transport: what a message is answered, and what one call may
// move and last (docs/protocol.md, "Limits").
//
// Not thread-safe: one message at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "distro/v1/link.pb.h"
#include "server/limits/stream_gate.h"

namespace distro::server {

// Data of one message, either way.
inline constexpr uint64_t kMaxLinkMessageBytes = 64 * 1024;
// Of one call, each way. A message counts as 256 bytes at least.
inline constexpr uint64_t kMaxLinkBytes = uint64_t{256} << 20;
inline constexpr absl::Duration kMaxLinkTime = absl::Minutes(5);

// kMaxLinkMessageBytes that do not compress.
std::string LinkNoise();

class LinkCall {
 public:
  // `needs` goes with the first answer. `noise` is LinkNoise(); it and the clock are borrowed. Its
  // time begins.
  LinkCall(std::optional<v1::LinkNeeds> needs, const Clock* clock, const std::string* noise);

  // The answer to a message; both count for the stream's worker. An error ends the call:
  // InvalidArgument: above the bound of one message. ResourceExhausted "limit": above that of the
  // call, or the worker's rate. DeadlineExceeded.
  absl::StatusOr<v1::MeasureLinkResponse> Take(const v1::MeasureLinkRequest& request,
                                               GatedStream* stream);

 private:
  absl::Status Count(uint64_t came, uint64_t asked);

  const Clock* const clock_;
  const std::string* const noise_;
  const absl::Duration ends_;
  std::optional<v1::LinkNeeds> needs_;
  uint64_t received_ = 0;
  uint64_t received_cost_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace distro::server
