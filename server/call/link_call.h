// One MeasureLink call without its transport: answers messages, and limits the bytes and the time
// of a call (docs/protocol.md, "Limits").
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
#include "server/limits/stream_limiter.h"

namespace distro::server {

// Maximum data bytes of one message, in either direction.
inline constexpr uint64_t kMaxLinkMessageBytes = 64 * 1024;
// Maximum bytes of one call, in each direction. A message counts as at least 256 bytes.
inline constexpr uint64_t kMaxLinkBytes = uint64_t{256} << 20;
inline constexpr absl::Duration kMaxLinkTime = absl::Minutes(5);

// kMaxLinkMessageBytes that do not compress.
std::string LinkNoise();

class LinkCall {
 public:
  // Starts the call's time. `needs` is sent with the first response. `noise` is LinkNoise(); it and
  // the clock are borrowed.
  LinkCall(std::optional<v1::LinkNeeds> needs, const Clock* clock, const std::string* noise);

  // Returns the response to a message; both are charged to the stream's worker. An error ends the
  // call: InvalidArgument: the message is above its limit. ResourceExhausted "limit": the call is
  // above its limit, or the worker above its rate. DeadlineExceeded: above kMaxLinkTime.
  absl::StatusOr<v1::MeasureLinkResponse> Take(const v1::MeasureLinkRequest& request,
                                               LimitedStream* stream);

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
