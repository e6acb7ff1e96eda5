// CreateRun: receives a header, then the snapshot from the offset in the answer (docs/protocol.md,
// "Creating a run").
#pragma once

#include <optional>
#include <string>

#include "common/base/log.h"
#include "distro/v1/admin.pb.h"
#include "server/call/observers.h"
#include "server/round/run_host.h"
#include "server/service/answering_reactor.h"

namespace distro::server {

class CreateRunReactor final
    : public AnsweringReactor<v1::CreateRunRequest, v1::CreateRunResponse> {
 public:
  // `caller` is the credential's name (empty: none). All others are borrowed and outlive the
  // stream.
  CreateRunReactor(grpc::CallbackServerContext* context, const std::string& caller, RunHost* host,
                   StreamLimiter* limiter, TransferObserver* observer, ConnectionTable* connections,
                   Log* log);

 private:
  absl::Status OnMessage(const v1::CreateRunRequest& request) override;
  absl::Status Handle(const v1::CreateRunRequest& request);
  absl::Status OnHalfClose() override;
  absl::Status OnHeader(const v1::CreateRunHeader& header);
  absl::Status OnFrame(const v1::SnapshotFrame& frame);

  RunHost* const host_;
  TransferObserver* const observer_;
  Log* const log_;
  std::optional<v1::CreateRunHeader> header_;
  bool created_ = false;
};

}  // namespace distro::server
