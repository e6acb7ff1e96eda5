// The implementations of round_method.h. Included only by round_method.cc and the implementations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/round/round_method.h"

namespace distro {

std::shared_ptr<const RoundMethod> MakeSignRounds(const v1::RunConfig& config,
                                                  std::shared_ptr<const Layout> layout);
// `as_dct` [tensors]: those that Muon steps.
std::shared_ptr<const RoundMethod> MakeDeltaRounds(const v1::RunConfig& config,
                                                   std::shared_ptr<const Layout> layout,
                                                   std::vector<bool> as_dct);

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

// Sets the payload and its checksum.
void FinishResult(std::string payload, SegmentResult* result);

}  // namespace distro
