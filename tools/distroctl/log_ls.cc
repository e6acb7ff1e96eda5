#include "tools/distroctl/log_ls.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "tools/distroctl/stored_log.h"

namespace distro::tools {

absl::StatusOr<std::string> ListLog(const LogLsOptions& options) {
  if (options.from > options.to) {
    return absl::InvalidArgumentError(
        absl::StrCat("--from: ", options.from, " is above --to, ", options.to));
  }
  DISTRO_ASSIGN_OR_RETURN(const StoredLog stored,
                          OpenStoredLog(options.data_dir, server::SnapshotCheck::kHead));
  const uint64_t end = std::min(options.to, stored.log->next_round().value());
  std::string text = absl::StrFormat("%10s %12s %7s %8s %12s %-8s %-16s  %s", "ROUND", "EPOCH",
                                     "MEMBERS", "INCLUDED", "BYTES", "PAYLOADS", "HASH", "REASON");
  for (RoundId round(options.from); round.value() < end; round = round.Next()) {
    DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, stored.log->Header(round));
    absl::StrAppendFormat(
        &text, "\n%10d %12d %7d %8d %12d %-8s %-16s  %s", round.value(), header.epoch(),
        header.members_size(), IncludedMembers(header), PayloadBytes(header),
        round < stored.log->first_round() ? "pruned" : "kept",
        ToHex(stored.log->HashBefore(round.Next())), absl::Utf8SafeCHexEscape(header.reason()));
  }
  return text;
}

}  // namespace distro::tools
