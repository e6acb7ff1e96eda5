#include "tools/distroctl/stored_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/round_log/committed_round.h"

namespace distro::tools {

absl::StatusOr<StoredLog> OpenStoredLog(const std::string& data_dir, server::SnapshotCheck check) {
  if (data_dir.empty())
    return absl::InvalidArgumentError("--data_dir: is required, an aggregator's data folder");
  StoredLog stored;
  auto run = server::ReadRun(data_dir, check);
  if (absl::IsNotFound(run.status()))
    return absl::NotFoundError(absl::StrCat("--data_dir: ", data_dir, ": holds no run"));
  DISTRO_RETURN_IF_ERROR(run.status());
  stored.run = *std::move(run);
  DISTRO_ASSIGN_OR_RETURN(
      stored.log, server::RoundLog::OpenReadOnly(data_dir + "/rounds", stored.run->layout.get(),
                                                 /*verify_payloads=*/0));
  return stored;
}

int IncludedMembers(const v1::RoundHeader& header) {
  int count = 0;
  for (int i = 0; i < header.members_size(); ++i) count += IsIncluded(header, i) ? 1 : 0;
  return count;
}

uint64_t PayloadBytes(const v1::RoundHeader& header) {
  uint64_t bytes = 0;
  for (const v1::CommittedSegment& segment : header.segments()) bytes += segment.payload_bytes();
  return bytes;
}

}  // namespace distro::tools
