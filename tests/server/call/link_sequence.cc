#include "tests/server/call/link_sequence.h"

#include <array>

#include "common/base/reason.h"

namespace distro::testing {
namespace {

using absl::StatusCode;

uint32_t Size(uint8_t byte) {
  constexpr std::array<uint32_t, 8> kSizes = {
      0, 1, 255, 1000, 64 << 10, (64 << 10) + 1, 1 << 20, UINT32_MAX};
  return kSizes[byte % kSizes.size()];
}

}  // namespace

void LinkSequence::Call(Input* input, const v1::LinkNeeds& needs) {
  const uint8_t byte = input->Byte();
  Link& link = links_[byte % 3];
  if (link.call == nullptr || byte >= 224) {
    link = {};  // gives its place back first
    link = Begin(input, needs);
    return;
  }
  if (byte >= 192) {
    link = {};
    return;
  }
  v1::MeasureLinkRequest request;
  request.set_data(std::string(std::min<uint32_t>(Size(input->Byte()), 1 << 20), 'x'));
  request.set_answer_bytes(Size(input->Byte()));
  for (uint32_t left = 1 + input->Below(16); left > 0; --left) {
    if (Message(request, &link)) continue;
    link = {};
    return;
  }
}

LinkSequence::Link LinkSequence::Begin(Input* input, const v1::LinkNeeds& needs) const {
  Link link;
  auto stream = limiter_->Open(server::StreamKind::kLink, [](const absl::Status&) {});
  RequireCode(stream.status(), {StatusCode::kResourceExhausted}, "Open");
  if (!stream.ok()) return link;
  link.stream = *std::move(stream);
  const uint32_t name = input->Below(3);  // uploads have the same names, and the same rate
  if (name > 0) link.stream->Identify(name == 1 ? "a" : "b", 0);
  link.call = std::make_unique<server::LinkCall>(needs, clock_, &noise_);
  return link;
}

bool LinkSequence::Message(const v1::MeasureLinkRequest& request, Link* link) {
  const auto answer = link->call->Take(request, link->stream.get());
  if (!answer.ok()) {
    RequireCode(answer.status(),
                {StatusCode::kInvalidArgument, StatusCode::kDeadlineExceeded,
                 StatusCode::kResourceExhausted},
                "MeasureLink");
    const bool exhausted = answer.status().code() == StatusCode::kResourceExhausted;
    Require(!exhausted || ReasonOf(answer.status()) == "limit", answer.status().ToString());
    return false;
  }
  link->received += request.data().size();
  Require(request.data().size() <= server::kMaxLinkMessageBytes, "a message above the bound");
  Require(answer->data().size() == request.answer_bytes(), "another answer than asked for");
  Require(answer->received_bytes() == link->received, "another count than what came");
  Require(answer->has_needs() == (link->answers++ == 0), "needs go with the first answer");
  return true;
}

}  // namespace distro::testing
