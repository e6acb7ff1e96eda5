#include "tools/distroctl/log_ls.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "tools/distroctl/stored_log.h"
#include "tools/distroctl/table.h"

namespace distro::tools {

absl::StatusOr<Report> ListLog(const LogLsOptions& options) {
  if (options.from > options.to) {
    return absl::InvalidArgumentError(
        absl::StrCat("--from: ", options.from, " is above --to, ", options.to));
  }
  DISTRO_ASSIGN_OR_RETURN(const StoredLog stored,
                          OpenStoredLog(options.data_dir, server::SnapshotCheck::kHead));
  const uint64_t end = std::min(options.to, stored.log->next_round().value());
  Table table(
      {">ROUND", ">EPOCH", ">MEMBERS", ">INCLUDED", ">BYTES", "PAYLOADS", "HASH", "REASON"});
  nlohmann::json rounds = nlohmann::json::array();
  for (RoundId round(options.from); round.value() < end; round = round.Next()) {
    DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, stored.log->Header(round));
    const bool kept = round >= stored.log->first_round();
    const std::string hash = ToHex(stored.log->HashBefore(round.Next()));
    table.Add({absl::StrCat(round.value()), absl::StrCat(header.epoch()),
               absl::StrCat(header.members_size()), absl::StrCat(IncludedMembers(header)),
               absl::StrCat(PayloadBytes(header)), kept ? "kept" : "pruned", hash,
               header.reason()});
    rounds.push_back({{"round", round.value()},
                      {"epoch", header.epoch()},
                      {"members", header.members_size()},
                      {"included", IncludedMembers(header)},
                      {"payload_bytes", PayloadBytes(header)},
                      {"kept", kept},
                      {"hash", hash},
                      {"reason", header.reason()}});
  }
  return Report{.text = table.Text(), .json = {{"rounds", std::move(rounds)}}};
}

Command LogLsCommand(const Console* console) {
  const auto options = std::make_shared<LogLsOptions>();
  return {
      .name = "log ls",
      .summary =
          "A line for each round of a data folder: members, bytes, chain hash, why it closed.",
      .flags = {{.name = "data_dir",
                 .value = &options->data_dir,
                 .help = "Data folder of an aggregator; only read. Required.",
                 .takes = Takes::kFolder},
                {.name = "from", .value = &options->from, .help = "The first round."},
                {.name = "to",
                 .value = &options->to,
                 .help = "The round before which the list ends; without it, the end of the log."}},
      .help =
          R"(INCLUDED counts the members whose update is in at least one segment. PAYLOADS says pruned where the results were
dropped since a snapshot holds what they did. The aggregator may be running.

Example:
  distroctl log ls --data_dir data --from 1200)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(ListLog(*options));
      }};
}

}  // namespace distro::tools
