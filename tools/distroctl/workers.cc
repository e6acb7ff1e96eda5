#include "tools/distroctl/workers.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "tools/distroctl/admin.h"
#include "tools/distroctl/commands.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

using Admin = v1::AdminService::StubInterface;

constexpr char kUnknown[] = "-";

template <typename T>
nlohmann::json Known(bool known, T value) {
  return known ? nlohmann::json(value) : nlohmann::json(nullptr);
}

// Whether a heartbeat said it.
bool KnowsRound(const v1::WorkerInfo& worker) {
  return worker.next_round() > 0 || worker.has_telemetry();
}

struct Rates {
  double tokens, sent_bytes, received_bytes;  // per second
};

double Rate(uint64_t now, uint64_t before, double seconds) {
  return static_cast<double>(now < before ? now : now - before) / seconds;
}

std::optional<Rates> RatesOf(const v1::WorkerInfo& worker, const WorkersSample& sample,
                             const WorkersSample* before) {
  if (before == nullptr || sample.at <= before->at || !worker.has_telemetry()) return std::nullopt;
  const double seconds = absl::ToDoubleSeconds(sample.at - before->at);
  for (const v1::WorkerInfo& old : before->list.workers()) {
    if (old.name() != worker.name() || !old.has_telemetry()) continue;
    const v1::WorkerTelemetry& then = old.telemetry();
    const v1::WorkerTelemetry& now = worker.telemetry();
    return Rates{Rate(now.tokens(), then.tokens(), seconds),
                 Rate(now.sent_bytes(), then.sent_bytes(), seconds),
                 Rate(now.received_bytes(), then.received_bytes(), seconds)};
  }
  return std::nullopt;
}

std::vector<std::string> Cells(const v1::WorkerInfo& worker, bool with_rates,
                               const std::optional<Rates>& rates) {
  const v1::WorkerTelemetry& telemetry = worker.telemetry();
  const bool reports = worker.has_telemetry();
  std::vector<std::string> cells = {
      worker.name(),
      Word(worker.state()),
      worker.probation_left() == 0 ? "-" : absl::StrCat(worker.probation_left()),
      KnowsRound(worker) ? absl::StrCat(worker.next_round()) : kUnknown,
      worker.has_silence() ? absl::StrFormat("%.1fs", SecondsOf(worker.silence())) : kUnknown,
      telemetry.has_loss() ? absl::StrFormat("%.4f", telemetry.loss()) : kUnknown,
      reports ? Bytes(static_cast<double>(telemetry.sent_bytes())) : kUnknown,
      reports ? Bytes(static_cast<double>(telemetry.received_bytes())) : kUnknown};
  if (with_rates) {
    cells.push_back(rates ? absl::StrFormat("%.0f", rates->tokens) : kUnknown);
    cells.push_back(rates ? Bytes(rates->sent_bytes) : kUnknown);
    cells.push_back(rates ? Bytes(rates->received_bytes) : kUnknown);
  }
  cells.push_back(worker.reason());
  return cells;
}

nlohmann::json WorkerJson(const v1::WorkerInfo& worker, const std::optional<Rates>& rates) {
  const v1::WorkerTelemetry& telemetry = worker.telemetry();
  const bool reports = worker.has_telemetry();
  nlohmann::json json = {
      {"name", worker.name()},
      {"state", Word(worker.state())},
      {"reason", worker.reason()},
      {"probation_left", worker.probation_left()},
      {"next_round", Known(KnowsRound(worker), worker.next_round())},
      {"silence_seconds", Known(worker.has_silence(), SecondsOf(worker.silence()))},
      {"loss", Known(telemetry.has_loss(), telemetry.loss())},
      {"tokens", Known(reports, telemetry.tokens())},
      {"sent_bytes", Known(reports, telemetry.sent_bytes())},
      {"received_bytes", Known(reports, telemetry.received_bytes())}};
  if (rates) {
    json["tokens_per_second"] = rates->tokens;
    json["sent_bytes_per_second"] = rates->sent_bytes;
    json["received_bytes_per_second"] = rates->received_bytes;
  }
  return json;
}

struct WatchOptions {
  ChannelOptions channel;
  bool watch = false;
  absl::Duration interval = absl::Seconds(2);
  uint64_t count = 0;
};

// Shows one report: clears a terminal first; appends to a file.
void ShowScreen(const Report& report, const Console& console) {
  if (console.json()) {
    *console.out << ShownLines(
                        report.json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
                 << std::endl;
  } else {
    if (isatty(STDOUT_FILENO) != 0) *console.out << "\033[H\033[2J";
    *console.out << ShownLines(report.text) << "\n" << std::endl;
  }
}

absl::Status Watch(Admin* admin, const WatchOptions& options, const Console& console) {
  std::optional<WorkersSample> before;
  for (uint64_t shown = 0;; absl::SleepFor(options.interval)) {
    absl::StatusOr<WorkersSample> sample = AskForWorkers(admin, absl::Now());
    if (!sample.ok() && !absl::IsUnavailable(sample.status())) return sample.status();
    if (!sample.ok()) {
      console.progress(absl::StrCat("no answer, trying again: ", sample.status().message()));
      continue;
    }
    const Report report = WorkersReport(*sample, before ? &*before : nullptr);
    ShowScreen(report, console);
    if (++shown == options.count || !*console.out) return absl::OkStatus();
    before = *std::move(sample);
  }
}

absl::StatusOr<int> RunWorkers(const WatchOptions& options, const Console& console) {
  if (options.interval < absl::Milliseconds(100))
    return absl::InvalidArgumentError(
        absl::StrCat("--interval: ", absl::FormatDuration(options.interval), " is below 100ms"));
  DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(options.channel));
  if (options.watch) {
    DISTRO_RETURN_IF_ERROR(Watch(admin.get(), options, console));
    return kExitDone;
  }
  DISTRO_ASSIGN_OR_RETURN(const WorkersSample sample, AskForWorkers(admin.get(), absl::Now()));
  return console.Show(WorkersReport(sample, nullptr));
}

}  // namespace

absl::StatusOr<WorkersSample> AskForWorkers(Admin* admin, absl::Time now) {
  WorkersSample sample;
  sample.at = now;
  DISTRO_ASSIGN_OR_RETURN(sample.run, CallAdmin(admin, &Admin::GetRun, v1::GetRunRequest()));
  DISTRO_ASSIGN_OR_RETURN(sample.list,
                          CallAdmin(admin, &Admin::ListWorkers, v1::ListWorkersRequest()));
  return sample;
}

Report WorkersReport(const WorkersSample& sample, const WorkersSample* before) {
  const v1::GetRunResponse& run = sample.run;
  std::vector<std::string> headings = {"NAME",     "STATE", ">PROBATION", ">NEXT ROUND",
                                       ">SILENCE", ">LOSS", ">SENT",      ">RECEIVED"};
  if (before != nullptr) headings.insert(headings.end(), {">TOKENS/S", ">SENT/S", ">RECEIVED/S"});
  headings.push_back("REASON");
  Table table(std::move(headings));
  nlohmann::json workers = nlohmann::json::array();
  for (const v1::WorkerInfo& worker : sample.list.workers()) {
    const std::optional<Rates> rates = RatesOf(worker, sample, before);
    table.Add(Cells(worker, before != nullptr, rates));
    workers.push_back(WorkerJson(worker, rates));
  }
  const std::string state = Word(run.state());
  return {
      .text = absl::StrCat(
          run.run_id().empty() ? "no run" : ShownText(run.run_id()), ": ", state, ", round ",
          run.round(), " of ", run.config().rounds(), ", ", sample.list.workers_size(), " workers",
          sample.list.left_out() == 0 ? "" : absl::StrCat(" and ", sample.list.left_out(), " more"),
          run.reason().empty() ? "" : ": ", ShownText(run.reason()), "\n", table.Text()),
      .json = {{"run_id", run.run_id()},
               {"state", state},
               {"round", run.round()},
               {"rounds", run.config().rounds()},
               {"workers", std::move(workers)},
               {"left_out", sample.list.left_out()}}};
}

Command WorkersCommand(const Console* console) {
  const auto options = std::make_shared<WatchOptions>();
  return {
      .name = "workers",
      .arguments = {{"HOST:PORT", &options->channel.aggregator}},
      .summary = "Lists the workers: state and reason, loss, bytes; repeatedly with --watch.",
      .flags = WithClientFlags(
          {{.name = "watch",
            .value = &options->watch,
            .help = "Repeats until a signal, and shows rates per second. With --output json one "
                    "line each time."},
           {.name = "interval",
            .value = &options->interval,
            .help = "With --watch: time between two lists, 100ms or more."},
           {.name = "count",
            .value = &options->count,
            .help = "With --watch: number of lists; 0: no limit."}},
          &options->channel),
      .help =
          R"(STATE: docs/protocol.md, "Membership". PROBATION: good updates still needed before its updates count. NEXT ROUND:
the first that is not in its parameters, by its last heartbeat. SILENCE: time since its last message, or since the
aggregator started. SENT, RECEIVED: payload since its process started. -, or null: not known, as for one that left. A bad
link shows as the smallest SENT/S, or as state late. Role viewer or higher.

Examples:
  distroctl workers aggregator.example:7700 --watch --ca ca.pem --token_file viewer.token
  distroctl workers 127.0.0.1:7700 --insecure --output json | jq -r '.workers[] | select(.state != "active") | .name')",
      .run = [options, console]() -> absl::StatusOr<int> {
        return RunWorkers(*options, *console);
      }};
}

}  // namespace distro::tools
