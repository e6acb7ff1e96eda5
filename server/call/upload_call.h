// One UploadUpdate call without its transport: a header, then frames. Each segment is assembled,
// validated, added to the round and acknowledged (docs/protocol.md, "Upload"). One that is held or
// closed is not decoded; a call may send at most as many of these as there are segments. A call
// holds at most one incomplete payload, which counts against the common limit (docs/protocol.md,
// "Limits").
//
// Not thread-safe: one message at a time.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/wire/frames.h"
#include "distro/v1/update.pb.h"
#include "server/call/observers.h"
#include "server/limits/stream_limiter.h"
#include "server/round/round_manager.h"

namespace distro::server {

// Why an upload was refused, as the metric's label: all values of
// updates_rejected_total{reason}.
inline constexpr std::array<absl::string_view, 15> kRejectReasons = {
    "conflict",    "draining",   "fenced",     "late",        "limit",
    "malformed",   "no_samples", "no_session", "not_open",    "paused",
    "quarantined", "replaced",   "stalled",    "wrong_epoch", "wrong_round"};

// The status's reason (common/base/reason.h) when it is one of these; otherwise by its code:
// "malformed" (InvalidArgument) or "no_session".
std::string RejectReason(const absl::Status& status);

class UploadCall {
 public:
  // All are borrowed and outlive the call. `manager` is nullptr while there is no run.
  UploadCall(RoundManager* manager, ByteBudget* inflight, TransferObserver* observer)
      : manager_(manager), inflight_(inflight), observer_(observer) {}

  // Handles a message; returns at most one response. An error ends the call; it has a reason and is
  // already counted.
  absl::StatusOr<std::optional<v1::UploadUpdateResponse>> Take(
      const v1::UploadUpdateRequest& request, LimitedStream* stream);
  // The client has finished sending: returns the call's final status.
  absl::Status End();
  // The transport refused the call with this status: counts it, and adds the worker's name.
  absl::Status Refused(const absl::Status& status);

 private:
  using Answer = absl::StatusOr<std::optional<v1::UploadUpdateResponse>>;
  Answer Handle(const v1::UploadUpdateRequest& request, LimitedStream* stream);
  Answer OnHeader(const v1::UploadHeader& header, LimitedStream* stream);
  Answer OnFrame(const v1::UploadFrame& frame, LimitedStream* stream);
  Answer OnPayload(std::string bytes, LimitedStream* stream);
  absl::Status Begin(const v1::UploadFrame& frame);
  std::string Where() const;

  // A payload that is arriving.
  struct Arriving {
    SegmentId segment;
    PayloadAssembler payload;
    ByteBudget::Share share;
  };

  RoundManager* const manager_;
  ByteBudget* const inflight_;
  TransferObserver* const observer_;
  bool abstains_ = false;
  std::optional<UploadTicket> ticket_;  // after the header
  std::optional<Arriving> arriving_;
  SegmentId segment_;     // of the last frame
  uint32_t repeats_ = 0;  // payloads that were held or closed
};

}  // namespace distro::server
