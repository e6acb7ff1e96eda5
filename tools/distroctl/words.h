// How enums, durations and sizes are written. Pure.
#pragma once

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "google/protobuf/duration.pb.h"

namespace distro::tools {

// MEMBER_STATE_ACTIVE -> "active".
inline std::string Word(v1::MemberState state) {
  const std::string& name = v1::MemberState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "MEMBER_STATE_"));
}

// RUN_STATE_TRAINING -> "training".
inline std::string Word(v1::RunState state) {
  const std::string& name = v1::RunState_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "RUN_STATE_"));
}

inline double SecondsOf(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + 1e-9 * duration.nanos();
}

// 1770000 -> "1.77 MB"; decimal units, three digits.
inline std::string Bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; unit < 5 && bytes >= 999.5; ++unit) bytes /= 1000;
  const int decimals = unit == 0 ? 0 : bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, bytes, kUnits[unit]);
}

}  // namespace distro::tools
