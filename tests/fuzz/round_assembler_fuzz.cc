// A sequence of frames, each with two bytes of length before it. The assembler may answer OK,
// InvalidArgument, FailedPrecondition, or Unavailable as the source of objects does, and a round
// that it gives has the payloads that its header lists.
#include <cstdint>
#include <cstdlib>

#include "common/base/checksum.h"
#include "common/feed/round_assembler.h"

namespace {

distro::Layout FuzzLayout() {
  return *distro::Layout::Create(*distro::Manifest::Create({{"a", {64, 128}}, {"b", {64}}}), 2);
}

// Gives bytes of the announced size, or nothing.
class SomeObjects final : public distro::ObjectSource {
 public:
  absl::StatusOr<distro::SharedBytes> Fetch(distro::RoundId,
                                            const distro::v1::SegmentObject& object) override {
    if (object.sha256().size() != 32 || object.payload_bytes() == 0) std::abort();
    if (object.payload_bytes() > (1 << 20)) std::abort();
    if (object.sha256()[0] == 0) return absl::UnavailableError("no mirror");
    return std::make_shared<const std::string>(object.payload_bytes(), object.sha256()[1]);
  }
};

void CheckRound(const distro::CommittedRound& round) {
  for (size_t i = 0; i < round.payloads.size(); ++i) {
    const auto& listed = round.header->segments(static_cast<int>(i));
    if (round.payloads[i]->size() != listed.payload_bytes()) std::abort();
    if (distro::Xxh3(*round.payloads[i]) != listed.checksum()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const distro::Layout layout = FuzzLayout();
  SomeObjects objects;
  distro::RoundAssembler assembler(&layout, distro::RoundId(0), &objects);
  while (size >= 2) {
    const size_t bytes = std::min<size_t>(size - 2, data[0] + 256 * data[1]);
    distro::v1::SubscribeRoundsResponse frame;
    if (!frame.ParseFromArray(data + 2, static_cast<int>(bytes))) return 0;
    data += 2 + bytes;
    size -= 2 + bytes;
    const auto event = assembler.Add(std::move(frame));
    if (!event.ok()) {
      const bool documented = event.status().code() == absl::StatusCode::kInvalidArgument ||
                              event.status().code() == absl::StatusCode::kFailedPrecondition ||
                              absl::IsUnavailable(event.status());
      if (!documented) std::abort();
      return 0;
    }
    if (const auto* round = std::get_if<distro::CommittedRound>(&*event)) CheckRound(*round);
  }
  return 0;
}
