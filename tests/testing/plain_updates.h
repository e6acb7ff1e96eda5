// Operations on whole updates, for tests. Programs process updates block by block as bytes arrive;
// tests compare that with these functions. Pure functions.
#pragma once

#include <cassert>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/method/signs/combine.h"
#include "common/method/signs/update.h"
#include "common/method/signs/update_reader.h"

namespace distro::testing {

inline absl::StatusOr<SignUpdate> DecodeSignUpdate(absl::string_view bytes,
                                                   const PayloadExpectation& expected) {
  DISTRO_ASSIGN_OR_RETURN(SignUpdateReader reader, SignUpdateReader::Create(bytes, expected));
  SignUpdate update{.k = expected.k, .positions = {}, .signs = {}};
  absl::Span<const uint16_t> positions;
  absl::Span<const int8_t> signs;
  for (uint32_t block = 0; block < reader.blocks(); ++block) {
    DISTRO_RETURN_IF_ERROR(reader.NextBlock(&positions, &signs));
    update.positions.insert(update.positions.end(), positions.begin(), positions.end());
    update.signs.insert(update.signs.end(), signs.begin(), signs.end());
  }
  return update;
}

struct WeightedUpdate {
  const SignUpdate* update = nullptr;  // borrowed
  int weight = 1;
};

// The sum of all updates. Requires at least one update, all of the same number of blocks, and
// sum of weight * K at or below kMaxVotesPerBlock.
inline Votes Combine(absl::Span<const WeightedUpdate> updates) {
  Votes votes;
  VoteAccumulator accumulator;
  for (int64_t block = 0; block < updates.front().update->blocks(); ++block) {
    for (const WeightedUpdate& one : updates) {
      assert(one.update->blocks() == updates.front().update->blocks());
      const int k = one.update->k;
      const auto positions = absl::MakeConstSpan(one.update->positions).subspan(block * k, k);
      accumulator.Add(positions, absl::MakeConstSpan(one.update->signs).subspan(block * k, k),
                      one.weight);
    }
    accumulator.EmitBlock(&votes);
  }
  return votes;
}

}  // namespace distro::testing
