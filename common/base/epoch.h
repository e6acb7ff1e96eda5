// How an epoch follows the calendar (docs/decisions/0005-epoch-follows-the-calendar.md). Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace distro {

// Random bits of an epoch, below the calendar's seconds: two folders that start within one second
// get different epochs, except for one case in 2^20. An epoch fits into 53 bits, the integers of
// JSON, until the year 2242.
inline constexpr int kEpochRandomBits = 20;

// Whether an aggregator whose clock is right cannot have this epoch for another day: its clock is
// wrong, or it lies. Such an epoch is believed until another is told, and is kept nowhere: else one
// answer would have the true aggregator refused for ever.
inline bool IsFarAhead(EpochId epoch, absl::Time now) {
  return absl::FromUnixSeconds(static_cast<int64_t>(epoch.value() >> kEpochRandomBits)) >
         now + absl::Hours(24);
}

// The newest of an epoch that was known and one that was told: the higher one, but one that is far
// ahead gives way to one that is not.
inline EpochId NewestEpoch(EpochId known, EpochId told, absl::Time now) {
  if (IsFarAhead(known, now) && !IsFarAhead(told, now)) return told;
  return std::max(known, told);
}

// The epoch to keep, or to claim to have seen: none if it is far ahead.
inline EpochId KeptEpoch(EpochId epoch, absl::Time now) {
  return IsFarAhead(epoch, now) ? EpochId() : epoch;
}

}  // namespace distro
