#include "server/service/link_service.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "server/service/refuse_stream.h"

namespace distro::server {
namespace {

constexpr uint64_t kMinMessageCost = 256;

std::string Noise() {
  std::string noise(kMaxLinkMessageBytes, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(SplitMix64(1, i));
  return noise;
}

absl::Status TooMuch(absl::string_view what) {
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, "limit",
      absl::StrCat("one measurement moves ", kMaxLinkBytes, " bytes at most; ", what));
}

class LinkReactor final : public AnsweringReactor<v1::MeasureLinkRequest, v1::MeasureLinkResponse> {
 public:
  LinkReactor(grpc::CallbackServerContext* context, const std::string& caller,
              std::optional<v1::LinkNeeds> needs, StreamGate* gate, const Clock* clock,
              const std::string* noise)
      : AnsweringReactor(context),
        clock_(clock),
        noise_(noise),
        ends_(clock->MonotonicNow() + kMaxLinkTime),
        needs_(std::move(needs)) {
    if (!Begin(gate, StreamKind::kLink).ok()) return;  // that has ended the stream
    // Before gRPC has this reactor, and calls it.
    if (!caller.empty()) stream()->Identify(caller, 0);
  }

 private:
  absl::Status OnMessage(const v1::MeasureLinkRequest& request) override {
    if (std::max<uint64_t>(request.data().size(), request.answer_bytes()) > kMaxLinkMessageBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("data, answer_bytes: above ", kMaxLinkMessageBytes));
    }
    if (clock_->MonotonicNow() > ends_)
      return absl::DeadlineExceededError(
          absl::StrCat("it lasts above ", absl::FormatDuration(kMaxLinkTime)));
    received_cost_ += std::max<uint64_t>(request.data().size(), kMinMessageCost);
    sent_ += request.answer_bytes();
    if (received_cost_ > kMaxLinkBytes) return TooMuch("more came");
    if (sent_ > kMaxLinkBytes) return TooMuch("more was asked for");
    DISTRO_RETURN_IF_ERROR(stream()->Received(request.data().size() + request.answer_bytes()));
    stream()->Moved(request.data().size() + request.answer_bytes());

    received_ += request.data().size();
    v1::MeasureLinkResponse answer;
    answer.set_received_bytes(received_);
    answer.set_data(noise_->data(), request.answer_bytes());
    if (needs_) *answer.mutable_needs() = *std::exchange(needs_, std::nullopt);
    Answer(answer);
    return absl::OkStatus();
  }
  absl::Status OnHalfClose() override { return absl::OkStatus(); }

  const Clock* const clock_;
  const std::string* const noise_;
  const absl::Duration ends_;
  std::optional<v1::LinkNeeds> needs_;  // until the first answer
  uint64_t received_ = 0;
  uint64_t received_cost_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace

LinkService::LinkService(RunHost* host, const Authorizer* authorizer, StreamGate* gate,
                         const Clock* clock)
    : host_(host), authorizer_(authorizer), gate_(gate), clock_(clock), noise_(Noise()) {}

RawBidiReactor* LinkService::MeasureLink(grpc::CallbackServerContext* context) {
  const absl::StatusOr<Caller> caller = authorizer_->Check(*context, Rpc::kMeasureLink);
  if (!caller.ok()) return RefuseStream<RawBidiReactor>(caller.status());
  std::optional<v1::LinkNeeds> needs;
  if (const RoundManager* manager = host_->manager()) needs = manager->LinkNeeds();
  return new LinkReactor(context, caller->name(), std::move(needs), gate_, clock_, &noise_);
}

}  // namespace distro::server
