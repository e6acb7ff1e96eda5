#include "tools/distroctl/stored_log.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/method/methods.h"
#include "common/run/record/committed_round.h"
#include "common/run/sample_pool.h"
#include "tools/distroctl/log_copy.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

std::string CommittedAt(const v1::RoundHeader& header) {
  const absl::Time time = absl::FromUnixSeconds(header.committed_at().seconds()) +
                          absl::Nanoseconds(header.committed_at().nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

std::string Members(const v1::RoundHeader& header) {
  Table table({"MEMBER", "STATE", ">WEIGHT", ">SEGMENTS", "STATE HASH", "INCARNATION", "REASON"});
  for (int i = 0; i < header.members_size(); ++i) {
    const v1::Member& member = header.members(i);
    table.Add({member.name(), Word(member.state()), absl::StrCat(member.weight()),
               absl::StrCat(IncludedSegments(header, i)),
               member.has_state_hash() ? ToHex(member.state_hash()) : "-",
               ToHex(member.incarnation()),
               absl::StrCat(member.state_reason(),
                            member.abstained() ? " (its step was not finite)" : "")});
  }
  return table.Text();
}

nlohmann::json RangesJson(const google::protobuf::RepeatedPtrField<v1::SampleRange>& ranges) {
  nlohmann::json list = nlohmann::json::array();
  for (const v1::SampleRange& range : ranges)
    list.push_back({{"first_sample", range.first_sample()}, {"samples", range.samples()}});
  return list;
}

nlohmann::json MembersJson(const v1::RoundHeader& header) {
  nlohmann::json members = nlohmann::json::array();
  for (int i = 0; i < header.members_size(); ++i) {
    const v1::Member& member = header.members(i);
    members.push_back({{"name", member.name()},
                       {"state", Word(member.state())},
                       {"weight", member.weight()},
                       {"segments", IncludedSegments(header, i)},
                       {"incarnation", ToHex(member.incarnation())},
                       {"reason", member.state_reason()},
                       {"abstained", member.abstained()}});
    if (member.local_steps() > 0) members.back()["local_steps"] = member.local_steps();
    if (!member.given().empty()) members.back()["given"] = RangesJson(member.given());
    if (member.has_state_hash()) members.back()["state_hash"] = ToHex(member.state_hash());
  }
  return members;
}

nlohmann::json SlotsJson(const v1::RoundHeader& header) {
  nlohmann::json slots = nlohmann::json::array();
  for (const v1::Slot& slot : header.slots()) {
    slots.push_back({{"worker", slot.worker()}, {"samples", RangesJson(RangesOf(slot))}});
  }
  return slots;
}

std::string RangesText(const google::protobuf::RepeatedPtrField<v1::SampleRange>& ranges) {
  return absl::StrJoin(ranges, ", ", [](std::string* out, const v1::SampleRange& range) {
    absl::StrAppendFormat(out, "%d to %d", range.first_sample(),
                          range.first_sample() + range.samples() - 1);
  });
}

void AppendSlots(const v1::RoundHeader& header, std::string* text) {
  absl::StrAppendFormat(text, "\nsamples of round %d, the next is %d", header.round() + 2,
                        header.next_sample());
  for (const v1::Slot& slot : header.slots()) {
    absl::StrAppendFormat(text, "\n%-32s %s", slot.worker(), RangesText(RangesOf(slot)));
  }
  if (!header.unread().empty())
    absl::StrAppend(text, "\nsamples to assign again: ", RangesText(header.unread()));
}

}  // namespace

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

absl::StatusOr<uint64_t> RoundsOf(const StoredLog& stored) {
  const RoundId next = stored.log->next_round();
  if (next == stored.log->begin()) return stored.run->config.rounds();
  DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader newest,
                          stored.log->Header(RoundId(next.value() - 1)));
  return std::max(stored.run->config.rounds(), newest.extension().rounds());
}

int IncludedMembers(const v1::RoundHeader& header) {
  int count = 0;
  for (int i = 0; i < header.members_size(); ++i) count += IsIncluded(header, i) ? 1 : 0;
  return count;
}

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
  const RoundId first = std::max(RoundId(options.from), stored.log->begin());
  for (RoundId round = first; round.value() < end; round = round.Next()) {
    DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, stored.log->Header(round));
    const bool kept = round >= stored.log->first_round();
    const std::string hash = ToHex(stored.log->HashBefore(round.Next()));
    table.Add({absl::StrCat(round.value()), absl::StrCat(header.epoch()),
               absl::StrCat(header.members_size()), absl::StrCat(IncludedMembers(header)),
               absl::StrCat(ResultBytes(header)), kept ? "kept" : "pruned", hash, header.reason()});
    rounds.push_back({{"round", round.value()},
                      {"epoch", header.epoch()},
                      {"members", header.members_size()},
                      {"included", IncludedMembers(header)},
                      {"payload_bytes", ResultBytes(header)},
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
          "Lists the rounds of a data folder: members, bytes, chain hash, reason of closing.",
      .flags = {DataDirFlag(&options->data_dir),
                {.name = "from", .value = &options->from, .help = "The first round."},
                {.name = "to",
                 .value = &options->to,
                 .help = "The first round not to list. Default: the end of the log."}},
      .help =
          R"(INCLUDED counts the members whose update is in at least one segment. PAYLOADS is pruned if the results were
deleted because a snapshot contains them. The aggregator may be running.

Example:
  distroctl log ls --data_dir data --from 1200)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(
            ReadLog(&options->data_dir, console->progress, [&] { return ListLog(*options); }));
      }};
}

absl::StatusOr<Report> ShowRound(const LogShowOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const StoredLog stored,
                          OpenStoredLog(options.data_dir, server::SnapshotCheck::kHead));
  const uint64_t end = stored.log->next_round().value();
  const uint64_t wanted = options.round.value_or(end == 0 ? 0 : end - 1);
  if (wanted < stored.log->begin().value()) {
    return absl::NotFoundError(
        absl::StrCat("round ", wanted, ": is not in the log, which begins at round ",
                     stored.log->begin().value(), " because the run was restored from an archive"));
  }
  if (wanted >= end) {
    return absl::NotFoundError(
        absl::StrCat("round ", wanted, ": is not in the log, which has ", end, " rounds"));
  }
  const RoundId round(wanted);
  DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, stored.log->Header(round));
  std::string text = absl::StrFormat(
      "round       %d%s\nepoch       %d\ncommitted   %s, %.3f s after it opened\nreason      %s\n"
      "hash        %s\npredecessor %s\nresult      %d bytes in %d segments%s\nstep        %s",
      wanted, header.paused() ? " (the run was paused)" : "", header.epoch(), CommittedAt(header),
      SecondsOf(header.duration()), ShownText(header.reason()),
      ToHex(stored.log->HashBefore(round.Next())), ToHex(header.predecessor_hash()),
      ResultBytes(header), header.segments_size(),
      round < stored.log->first_round() ? ", pruned" : "",
      MethodOf(header.step()).DescribeStep(header.step()));
  absl::StrAppend(&text, "\n", Members(header));
  AppendSlots(header, &text);
  return Report{.text = std::move(text),
                .json = {{"round", wanted},
                         {"epoch", header.epoch()},
                         {"paused", header.paused()},
                         {"committed_at", CommittedAt(header)},
                         {"duration_seconds", SecondsOf(header.duration())},
                         {"reason", header.reason()},
                         {"hash", ToHex(stored.log->HashBefore(round.Next()))},
                         {"predecessor_hash", ToHex(header.predecessor_hash())},
                         {"payload_bytes", ResultBytes(header)},
                         {"segments", header.segments_size()},
                         {"kept", round >= stored.log->first_round()},
                         {"members", MembersJson(header)},
                         {"next_sample", header.next_sample()},
                         {"unread", RangesJson(header.unread())},
                         {"slots", SlotsJson(header)}}};
}

Command LogShowCommand(const Console* console) {
  struct Given {
    std::string data_dir;
    std::string round;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "log show",
      .arguments = {{"ROUND", &given->round, /*required=*/false}},
      .summary = "Shows the header of a round (default: the newest): members, hashes, samples.",
      .flags = {DataDirFlag(&given->data_dir)},
      .help =
          R"(SEGMENTS is the number of segments that include a member's update; STATE HASH is the hash it reported with its
upload. The aggregator may be running.

Examples:
  distroctl log show --data_dir data
  distroctl log show 1234 --data_dir data --output json)",
      .run = [given, console]() -> absl::StatusOr<int> {
        LogShowOptions options = {.data_dir = given->data_dir, .round = std::nullopt};
        uint64_t round;
        if (!given->round.empty()) {
          if (!absl::SimpleAtoi(given->round, &round))
            return absl::InvalidArgumentError(
                absl::StrCat("ROUND: \"", given->round, "\" is not a whole number from 0"));
          options.round = round;
        }
        return console->Show(
            ReadLog(&options.data_dir, console->progress, [&] { return ShowRound(options); }));
      }};
}

}  // namespace distro::tools
