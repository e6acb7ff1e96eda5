// Identifiers as types, so that a round cannot be passed as a segment. Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace distro {

// An integer with explicit conversion only. `Tag` makes the type distinct.
template <typename Tag, typename T>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(T value) : value_(value) {}

  constexpr T value() const { return value_; }
  constexpr StrongId Next() const { return StrongId(value_ + 1); }
  constexpr auto operator<=>(const StrongId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << id.value_; }

 private:
  T value_ = 0;
};

// A round of the run, from 0.
using RoundId = StrongId<struct RoundIdTag, uint64_t>;
// A segment of the layout, from 0.
using SegmentId = StrongId<struct SegmentIdTag, uint32_t>;
// One start of an aggregator on a data folder; increases with every start, from 1.
using EpochId = StrongId<struct EpochIdTag, uint64_t>;

// Names of workers and runs: 1 to 63 of [a-z0-9-]. InvalidArgument says which character or length
// is wrong; `what` names the field in the message.
absl::Status ValidateName(absl::string_view name, absl::string_view what);

}  // namespace distro
