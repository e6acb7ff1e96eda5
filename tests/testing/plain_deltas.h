// Operations on whole updates of deltas, for tests; programs process them block by block as bytes
// arrive. Pure functions.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bitmap.h"
#include "common/base/status_macros.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/update.h"

namespace distro::testing {

inline absl::StatusOr<DeltaUpdate> DecodeDenseUpdate(absl::string_view bytes,
                                                     const PayloadExpectation& expected) {
  DISTRO_ASSIGN_OR_RETURN(const DenseUpdate dense, OpenDenseUpdate(bytes, expected));
  DeltaUpdate update = {.k = kBlockElements, .positions = {}, .signs = {}, .codes = {}};
  for (uint32_t b = 0; b < expected.blocks; ++b) {
    const bool empty = dense.empty(b);
    for (int i = 0; i < kBlockElements; ++i) {
      const int sign = 1 - 2 * static_cast<int>(BitOf(dense.SignsOf(b), i));
      update.positions.push_back(static_cast<uint16_t>(empty ? 0 : i));
      update.signs.push_back(static_cast<int8_t>(empty ? 0 : sign));
    }
    update.codes.push_back(dense.code(b));
  }
  return update;
}

inline absl::StatusOr<DeltaUpdate> DecodeDeltaUpdate(absl::string_view bytes,
                                                     const PayloadExpectation& expected) {
  if (IsDense(expected.k)) return DecodeDenseUpdate(bytes, expected);
  DISTRO_ASSIGN_OR_RETURN(DeltaUpdateReader reader, DeltaUpdateReader::Create(bytes, expected));
  DeltaUpdate update = {.k = expected.k, .positions = {}, .signs = {}, .codes = {}};
  for (uint32_t b = 0; b < expected.blocks; ++b) {
    DISTRO_ASSIGN_OR_RETURN(const GapBlock<DeltaFormat>* const block, reader.NextBlock());
    const bool empty = block->count == 0;
    for (int i = 0; i < expected.k; ++i) {
      update.positions.push_back(empty ? uint16_t{0} : block->positions[i]);
      update.signs.push_back(empty ? int8_t{0} : block->signs[i]);
    }
    update.codes.push_back(block->code);
  }
  return update;
}

}  // namespace distro::testing
