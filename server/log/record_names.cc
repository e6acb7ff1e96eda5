#include "server/log/record_names.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace distro::server {
namespace {

constexpr absl::string_view kSuffix = ".record";

}  // namespace

std::string RecordName(RoundId round) { return absl::StrFormat("%010d%s", round.value(), kSuffix); }

std::optional<RoundId> RoundOfRecordName(absl::string_view name) {
  uint64_t round;
  if (!absl::SimpleAtoi(absl::StripSuffix(name, kSuffix), &round)) return std::nullopt;
  if (name != RecordName(RoundId(round))) return std::nullopt;
  return RoundId(round);
}

absl::Status StartDamage(const absl::Status& status) {
  if (status.ok() || !absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      status.message(),
      ": restore this file from a copy; without one the run in this folder cannot continue, and a "
      "new run begins in an empty folder, for example from a checkpoint that a worker wrote"));
}

absl::Status RoundDamage(const absl::Status& status, RoundId round) {
  if (status.ok() || !absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      status.message(),
      ": restore this file from a copy; without one, move it and all later records away to ",
      "continue the run from round ", round.value(),
      " (workers that are further start again from the snapshot)"));
}

}  // namespace distro::server
