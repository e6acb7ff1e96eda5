// The result of a run that sends every position (K = 4096; docs/payload_format.md, "Dense deltas"):
// one symbol for each position, where two neighbours share a prefix code. Canonical and safe with
// hostile bytes, like the gap codec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update.h"

namespace distro {

// A symbol of a result: 0 for a position without an entry, else 1 + 2 * level, one more if it is
// negative.
inline constexpr uint32_t kDenseSymbols = 1 + 2 * kLevels;
constexpr uint8_t DenseSymbol(int level, bool negative) {
  return static_cast<uint8_t>(1 + 2 * level + (negative ? 1 : 0));
}

//   symbols  u8 [B, 4096]
//   codes    u8 [B]  as in DeltaResult
struct DenseResult {
  std::vector<uint8_t> symbols;
  std::vector<uint8_t> codes;

  int64_t blocks() const { return static_cast<int64_t>(codes.size()); }
  bool operator==(const DenseResult&) const = default;
};

// Both require the blocks of one segment: its entries are fewer than 2^32.
DenseResult DenseOf(const DeltaResult& result);
DeltaResult SparseOf(const DenseResult& result);

void AppendDenseResult(const DenseResult& result, std::string* body);

// Decodes on `threads` threads; the result or error does not depend on their number.
// InvalidArgument: it is not the output of AppendDenseResult. Requires threads >= 1.
absl::StatusOr<DenseResult> DecodeDenseResult(absl::string_view body, uint32_t blocks, int threads);

}  // namespace distro
