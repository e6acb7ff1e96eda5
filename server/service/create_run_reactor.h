// CreateRun: a header, then the snapshot from the offset that the answer named (docs/protocol.md, "Creating a run").
#pragma once

#include <optional>

#include "distro/v1/admin.pb.h"
#include "server/round/run_host.h"
#include "server/service/bidi_reactor.h"
#include "server/service/transfer_observer.h"

namespace distro::server {

class CreateRunReactor final
    : public AnsweringReactor<v1::CreateRunRequest, v1::CreateRunResponse> {
 public:
  // All are borrowed and outlive the stream.
  CreateRunReactor(grpc::CallbackServerContext* context, RunHost* host, StreamGate* gate,
                   TransferObserver* observer, ConnectionTable* connections);

 private:
  absl::Status OnMessage(const v1::CreateRunRequest& request) override;
  absl::Status OnHalfClose() override;
  absl::Status OnHeader(const v1::CreateRunHeader& header);
  absl::Status OnFrame(const v1::SnapshotFrame& frame);

  RunHost* const host_;
  TransferObserver* const observer_;
  std::optional<v1::CreateRunHeader> header_;
  bool created_ = false;
};

}  // namespace distro::server
