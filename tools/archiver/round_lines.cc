#include "tools/archiver/round_lines.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/run/record/committed_round.h"
#include "nlohmann/json.hpp"

namespace distro::tools {

std::string RoundLine(const v1::RoundHeader& header, const RoundReading& reading, absl::Time time) {
  int included = 0;
  for (int i = 0; i < header.members_size(); ++i) included += IsIncluded(header, i) ? 1 : 0;
  nlohmann::ordered_json line = {{"time", static_cast<double>(absl::ToUnixMillis(time)) / 1e3},
                                 {"run", reading.run_id},
                                 {"round", header.round()},
                                 {"rounds", reading.rounds},
                                 {"epoch", header.epoch()},
                                 {"members", header.members_size()},
                                 {"included", included},
                                 {"received_bytes", ResultBytes(header)},
                                 {"lag_rounds", reading.lag_rounds},
                                 {"state_hash", ToHex(reading.state_hash)}};
  for (int i = 0; i < kArchiverPhases; ++i) {
    line["seconds"][std::string(ArchiverPhaseName(static_cast<ArchiverPhase>(i)))] =
        reading.seconds[i];
  }
  return line.dump(-1, ' ', true);
}

absl::StatusOr<std::unique_ptr<RoundLines>> RoundLines::Open(const std::string& path, Log* log,
                                                             const Clock* clock) {
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<LineFile> file, LineFile::Open(path, kMaxRoundLineBytes));
  return absl::WrapUnique(new RoundLines(std::move(file), log, clock));
}

void RoundLines::Add(const v1::RoundHeader& header, RoundReading reading) {
  const std::array<double, kArchiverPhases> now = reading.seconds;
  for (int i = 0; i < kArchiverPhases; ++i) reading.seconds[i] -= seconds_[i];
  seconds_ = now;
  const absl::Status status = file_->Append(RoundLine(header, reading, clock_->WallNow()));
  if (status.ok()) {
    failures_.Succeeded("rounds are written to metrics_file again");
  } else {
    failures_.Failed(status.message());
  }
}

}  // namespace distro::tools
