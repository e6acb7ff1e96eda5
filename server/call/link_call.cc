#include "server/call/link_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

absl::Status TooMuch(absl::string_view what) {
  return ErrorWithReason(absl::StatusCode::kResourceExhausted, "limit",
                         absl::StrCat("refused: a measurement may move ", kMaxLinkBytes,
                                      " bytes in each direction, and ", what));
}

}  // namespace

std::string LinkNoise() {
  std::string noise(kMaxLinkMessageBytes, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(SplitMix64(1, i));
  return noise;
}

LinkCall::LinkCall(std::optional<v1::LinkNeeds> needs, const Clock* clock, const std::string* noise)
    : clock_(clock),
      noise_(noise),
      ends_(clock->MonotonicNow() + kMaxLinkTime),
      needs_(std::move(needs)) {}

absl::Status LinkCall::Count(uint64_t came, uint64_t asked) {
  if (std::max(came, asked) > kMaxLinkMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("data, answer_bytes: above ", kMaxLinkMessageBytes));
  }
  if (clock_->MonotonicNow() > ends_) {
    return absl::DeadlineExceededError(
        absl::StrCat("the measurement takes longer than ", absl::FormatDuration(kMaxLinkTime)));
  }
  received_ += came;
  received_cost_ += std::max(came, kMinMessageCost);
  sent_ += asked;
  if (received_cost_ > kMaxLinkBytes) return TooMuch("more were sent");
  if (sent_ > kMaxLinkBytes) return TooMuch("more were asked for");
  return absl::OkStatus();
}

absl::StatusOr<v1::MeasureLinkResponse> LinkCall::Take(const v1::MeasureLinkRequest& request,
                                                       LimitedStream* stream) {
  const uint64_t both = request.data().size() + request.answer_bytes();
  DISTRO_RETURN_IF_ERROR(Count(request.data().size(), request.answer_bytes()));
  DISTRO_RETURN_IF_ERROR(stream->Received(both));
  stream->Moved(both);
  v1::MeasureLinkResponse answer;
  answer.set_received_bytes(received_);
  answer.set_data(noise_->data(), request.answer_bytes());
  if (needs_) *answer.mutable_needs() = *std::exchange(needs_, std::nullopt);
  return answer;
}

}  // namespace distro::server
