// Operations on whole updates of deltas, for tests; programs process them block by block as bytes
// arrive. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/bitmap.h"
#include "common/base/status_macros.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/update.h"
#include "common/method/deltas/update_reader.h"

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
  std::vector<SentGroup> groups(GroupsOf(expected.blocks));
  DISTRO_RETURN_IF_ERROR(reader.NextGroups(absl::MakeSpan(groups)));
  for (const SentGroup& group : groups) {
    const uint16_t* entry = group.entries.data();
    for (uint32_t b = 0; b < group.blocks; ++b) {
      for (int i = 0; i < expected.k; ++i) {
        update.positions.push_back(group.empty[b] ? uint16_t{0} : SentPosition(*entry));
        update.signs.push_back(
            static_cast<int8_t>(group.empty[b] ? 0 : 1 - 2 * int{SentNegative(*entry)}));
        entry += group.empty[b] ? 0 : 1;
      }
      update.codes.push_back(group.codes[b]);
    }
  }
  return update;
}

}  // namespace distro::testing
