// UploadUpdate over gRPC: runs an UploadCall on a stream of the limiter.
#pragma once

#include "distro/v1/update.pb.h"
#include "server/auth/authorizer.h"
#include "server/call/upload_call.h"
#include "server/limits/stream_limiter.h"
#include "server/service/answering_reactor.h"

namespace distro::server {

class UploadReactor final
    : public AnsweringReactor<v1::UploadUpdateRequest, v1::UploadUpdateResponse> {
 public:
  // All but the caller are borrowed and outlive the stream. `manager` is nullptr while there is no
  // run.
  UploadReactor(grpc::CallbackServerContext* context, Caller caller, RoundManager* manager,
                StreamLimiter* limiter, TransferObserver* observer, ConnectionTable* connections);

 private:
  absl::Status OnMessage(const v1::UploadUpdateRequest& request) override;
  absl::Status OnHalfClose() override { return call_.End(); }
  absl::Status OnUnreadable(const absl::Status& status) override { return call_.Refused(status); }
  void OnStopped(const absl::Status& status) override;

  const Caller caller_;
  TransferObserver* const observer_;
  UploadCall call_;
};

}  // namespace distro::server
