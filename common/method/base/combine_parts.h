// What implementations of RoundMethod::Combine share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/checksum.h"
#include "common/method/base/round_method.h"

namespace distro {

// Divides 0 .. count - 1 into ranges of about the same size, for threads. Requires 1 <= parts.
template <typename Range>
std::vector<Range> CutEvenly(uint32_t count, uint32_t parts) {
  std::vector<Range> ranges;
  for (uint64_t part = 0, first = 0; part < parts; ++part) {
    const uint64_t end = uint64_t{count} * (part + 1) / parts;
    ranges.push_back(
        {.first = static_cast<uint32_t>(first), .count = static_cast<uint32_t>(end - first)});
    first = end;
  }
  return ranges;
}

// The status if a checked payload does not decode: memory is damaged.
inline absl::Status Damaged(const absl::Status& status) {
  return absl::DataLossError(status.message());
}

// Sets the payload and its checksums.
inline void FinishResult(std::string payload, SegmentResult* result) {
  result->checksum = Xxh3(payload);
  result->sha256 = Sha256(payload);
  result->payload = std::make_shared<const std::string>(std::move(payload));
}

}  // namespace distro
