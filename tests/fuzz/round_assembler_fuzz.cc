// A sequence of frames, each with two bytes of length before it. The assembler may answer OK,
// InvalidArgument or FailedPrecondition, and a round that it gives has the payloads that its header
// lists.
#include <cstdint>
#include <cstdlib>

#include "common/base/checksum.h"
#include "common/feed/round_assembler.h"

namespace {

distro::Layout FuzzLayout() {
  return *distro::Layout::Create(*distro::Manifest::Create({{"a", {64, 128}}, {"b", {64}}}), 2);
}

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
  distro::RoundAssembler assembler(&layout, distro::RoundId(0));
  while (size >= 2) {
    const size_t bytes = std::min<size_t>(size - 2, data[0] + 256 * data[1]);
    distro::v1::SubscribeRoundsResponse frame;
    if (!frame.ParseFromArray(data + 2, static_cast<int>(bytes))) return 0;
    data += 2 + bytes;
    size -= 2 + bytes;
    const auto event = assembler.Add(std::move(frame));
    if (!event.ok()) {
      const bool documented = event.status().code() == absl::StatusCode::kInvalidArgument ||
                              event.status().code() == absl::StatusCode::kFailedPrecondition;
      if (!documented) std::abort();
      return 0;
    }
    if (const auto* round = std::get_if<distro::CommittedRound>(&*event)) CheckRound(*round);
  }
  return 0;
}
