// UploadUpdate: a header, then frames; each segment is put together, validated and taken into the round, and
// acknowledged (docs/protocol.md, "Upload").
#pragma once

#include <optional>

#include "common/rpc/frames.h"
#include "distro/v1/update.pb.h"
#include "server/round/round_manager.h"
#include "server/round/run_host.h"
#include "server/service/bidi_reactor.h"
#include "server/service/transfer_observer.h"

namespace distro::server {

class UploadReactor final
    : public AnsweringReactor<v1::UploadUpdateRequest, v1::UploadUpdateResponse> {
 public:
  // Both are borrowed and outlive the stream. `manager` may be null: there is no run.
  UploadReactor(RoundManager* manager, TransferObserver* observer);

 private:
  absl::Status OnMessage(const v1::UploadUpdateRequest& request) override;
  absl::Status OnHalfClose() override;

  absl::Status Handle(const v1::UploadUpdateRequest& request);
  absl::Status OnHeader(const v1::UploadHeader& header);
  absl::Status OnFrame(const v1::UploadFrame& frame);
  absl::Status OnPayload(SegmentId segment, std::string payload);

  RoundManager* const manager_;
  TransferObserver* const observer_;
  bool abstains_ = false;
  std::optional<UploadTicket> ticket_;       // after the header
  std::optional<PayloadAssembler> payload_;  // of the segment that is arriving
  SegmentId segment_;
};

}  // namespace distro::server
