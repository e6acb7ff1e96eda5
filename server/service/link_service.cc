#include "server/service/link_service.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "server/service/raw_message.h"

namespace distro::server {
namespace {

class LinkReactor final : public AnsweringReactor<v1::MeasureLinkRequest, v1::MeasureLinkResponse> {
 public:
  LinkReactor(grpc::CallbackServerContext* context, const std::string& caller,
              std::optional<v1::LinkNeeds> needs, StreamLimiter* limiter,
              ConnectionTable* connections, const Clock* clock, const std::string* noise)
      : AnsweringReactor(context, connections), call_(std::move(needs), clock, noise) {
    (void)Begin(limiter, StreamKind::kLink, caller);  // an error has ended the stream
  }

 private:
  absl::Status OnMessage(const v1::MeasureLinkRequest& request) override {
    DISTRO_ASSIGN_OR_RETURN(const v1::MeasureLinkResponse answer, call_.Take(request, stream()));
    Answer(answer);
    return absl::OkStatus();
  }
  absl::Status OnHalfClose() override { return absl::OkStatus(); }

  LinkCall call_;
};

}  // namespace

LinkService::LinkService(RunHost* host, const CallChecks* checks, StreamLimiter* limiter,
                         const Clock* clock)
    : host_(host), checks_(checks), limiter_(limiter), clock_(clock), noise_(LinkNoise()) {}

RawBidiReactor* LinkService::MeasureLink(grpc::CallbackServerContext* context) {
  const absl::StatusOr<Caller> caller = checks_->Admit(*context, Rpc::kMeasureLink);
  if (!caller.ok()) return RefuseStream<RawBidiReactor>(caller.status());
  std::optional<v1::LinkNeeds> needs;
  if (const RoundManager* manager = host_->manager()) needs = manager->LinkNeeds();
  return new LinkReactor(context, caller->name(), std::move(needs), limiter_,
                         checks_->connections(), clock_, &noise_);
}

}  // namespace distro::server
