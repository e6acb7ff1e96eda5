#include "server/log/epoch_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "distro/v1/round.pb.h"
#include "server/log/record_format.h"
#include "server/log/record_reader.h"

namespace distro::server {
namespace {

// A higher epoch leaves no room for the next ones, so the file must be damaged.
constexpr uint64_t kMaxEpoch = uint64_t{1} << 63;

std::string PathOf(const std::string& data_dir) { return data_dir + "/epoch"; }

absl::StatusOr<uint64_t> ReadEpoch(const std::string& path, bool has_run) {
  const absl::StatusOr<std::string> text = ReadTextFile(path, 64);
  if (absl::IsNotFound(text.status()) && !has_run) return 0;
  if (!text.ok() && !absl::IsNotFound(text.status()) && !absl::IsInvalidArgument(text.status()))
    return text.status();
  uint64_t last = 0;
  if (text.ok() && absl::SimpleAtoi(absl::StripSuffix(*text, "\n"), &last) && last > 0 &&
      last < kMaxEpoch && *text == absl::StrCat(last, "\n")) {
    return last;
  }
  return absl::DataLossError(
      absl::StrCat(path,
                   ": is missing or not a number: write into it a number that is not below the "
                   "epoch of the last log lines, and a line feed"));
}

// 0: no record can be read; the round log reports the reason.
uint64_t EpochOfNewestRecord(const std::string& rounds_dir) {
  std::optional<RoundId> newest;
  std::error_code error;
  for (std::filesystem::directory_iterator i(rounds_dir, error), end; !error && i != end;
       i.increment(error)) {
    const auto round = RoundOfRecordName(i->path().filename().string());
    if (round && (!newest || *newest < *round)) newest = round;
  }
  if (!newest) return 0;
  const auto record =
      RecordReader::Open(absl::StrCat(rounds_dir, "/", RecordName(*newest)), RecordKind::kRound);
  v1::RoundHeader header;
  if (!record.ok()) return 0;
  const auto bytes = (*record)->HeaderOf(RoundId((*record)->end().value() - 1));
  if (!bytes.ok() || !header.ParseFromString(*bytes)) return 0;
  return header.epoch() < kMaxEpoch ? header.epoch() : 0;
}

}  // namespace

absl::StatusOr<EpochId> RaiseEpoch(const std::string& data_dir, bool has_run, uint64_t random,
                                   const Clock& clock, Disk* disk, Log* log) {
  const std::string path = PathOf(data_dir);
  DISTRO_ASSIGN_OR_RETURN(const uint64_t last, ReadEpoch(path, has_run));
  const uint64_t recorded = EpochOfNewestRecord(data_dir + "/rounds");
  if (recorded > last) {
    log->Warning("epoch file is older than the log: the epoch goes on from the newest record",
                 {{"path", path}, {"epoch_file", last}, {"record", recorded}});
  }
  const int64_t seconds = absl::ToUnixSeconds(clock.WallNow());
  const uint64_t calendar = seconds > 0 ? static_cast<uint64_t>(seconds) << kEpochRandomBits : 0;
  const uint64_t drawn = random % (uint64_t{1} << kEpochRandomBits);
  const uint64_t epoch = std::max({last, recorded, calendar}) + 1 + drawn;
  DISTRO_RETURN_IF_ERROR(WriteAtomically(disk, path, absl::StrCat(epoch, "\n")));
  return EpochId(epoch);
}

absl::Status CheckEpochFile(const std::string& data_dir) {
  return ReadEpoch(PathOf(data_dir), /*has_run=*/true).status();
}

}  // namespace distro::server
