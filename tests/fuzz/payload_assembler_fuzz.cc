// Frames of one upload, as either end takes them: OK or InvalidArgument, never more than the limit,
// and a complete payload is the frames' data in order. The first byte is the limit; each frame is
// its offset, size of data and payload_bytes, a byte each (the last two with a sign), and the data.
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/net/wire/frames.h"
#include "tests/fuzz/require.h"

namespace {

using distro::testing::Require;

// Small numbers, and those at the end of the range.
uint64_t Widened(uint8_t byte) { return static_cast<uint64_t>(int64_t{static_cast<int8_t>(byte)}); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint64_t limit = data[0];
  absl::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  distro::PayloadAssembler assembler(limit);
  std::string taken;
  while (rest.size() >= 3) {
    const auto byte = [rest](size_t i) { return static_cast<uint8_t>(rest[i]); };
    const absl::string_view frame = rest.substr(3, byte(1));
    const absl::Status status = assembler.Add(Widened(byte(0)), frame, Widened(byte(2)));
    Require(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
    if (status.ok()) taken.append(frame.data(), frame.size());
    Require(assembler.received() == taken.size() && taken.size() <= limit);
    rest.remove_prefix(3 + frame.size());
  }
  if (assembler.complete()) Require(assembler.Take() == taken);
  return 0;
}
