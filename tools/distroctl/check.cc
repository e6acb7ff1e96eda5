#include "tools/distroctl/check.h"

#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/client/channel.h"
#include "common/client/diagnosis.h"
#include "common/client/health.h"
#include "common/client/link_bench.h"
#include "common/client/link_report.h"
#include "common/net/http/http_get.h"
#include "common/net/rpc/status.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/admin.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

constexpr size_t kMaxHttpBytes = 16 << 20;
constexpr absl::Duration kCertificateSoon = absl::Hours(24 * 14);
constexpr double kDiskLow = 0.1;  // free share of the data folder's file system

enum class Result { kOk, kWarning, kFailed };

const char* Word(Result result) {
  return result == Result::kOk ? "ok" : result == Result::kWarning ? "warning" : "failed";
}

// The results of the checks so far.
class Findings {
 public:
  void Add(std::string question, Result result, std::string detail) {
    table_.Add({question, Word(result), detail});
    json_.push_back({{"question", question}, {"result", Word(result)}, {"detail", detail}});
    if (result == Result::kFailed) failed_.push_back(std::move(question));
  }
  Report Make() const {
    return {.text = table_.Text(),
            .json = {{"ok", failed_.empty()}, {"checks", json_}},
            .verdict = failed_.empty() ? absl::OkStatus()
                                       : absl::AbortedError(absl::StrCat(
                                             "failed: ", absl::StrJoin(failed_, ", ")))};
  }

 private:
  Table table_{{"CHECK", "RESULT", "DETAIL"}};
  nlohmann::json json_ = nlohmann::json::array();
  std::vector<std::string> failed_;
};

void CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const CheckOptions& options,
                 Findings* findings) {
  const absl::StatusOr<bool> serving = AskHealth(channel, options.timeout);
  const std::string how = options.channel.insecure ? "plaintext" : "TLS";
  if (!serving.ok()) {
    const absl::Status why =
        Explain(serving.status(), {.channel = options.channel, .step_timeout = options.timeout});
    return findings->Add("connection", Result::kFailed, absl::StrCat(how, ": ", why.message()));
  }
  findings->Add("connection", options.channel.insecure ? Result::kWarning : Result::kOk,
                options.channel.insecure ? "plaintext: anybody can read and change it" : how);
  findings->Add("health", *serving ? Result::kOk : Result::kFailed,
                *serving ? "SERVING" : "not SERVING: it is draining, or has not started");
}

void CheckRun(const std::shared_ptr<grpc::Channel>& channel, const CheckOptions& options,
              Findings* findings) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + options.timeout));
  v1::GetRunResponse run;
  const absl::Status status =
      FromGrpcStatus(v1::AdminService::NewStub(channel)->GetRun(&context, {}, &run));
  if (!status.ok()) return findings->Add("run", Result::kFailed, std::string(status.message()));
  if (run.run_id().empty()) {
    return findings->Add("run", options.require_run ? Result::kFailed : Result::kWarning,
                         absl::StrCat("no run yet: ", ShownText(run.reason())));
  }
  findings->Add("run", Result::kOk,
                absl::StrCat(ShownText(run.run_id()), " is ", distro::tools::Word(run.state()),
                             ", round ", run.round(), " of ", run.config().rounds(),
                             run.reason().empty() ? "" : ": ", ShownText(run.reason())));
}

// The value of a metric without labels; nullopt: it is missing.
std::optional<double> Metric(absl::string_view body, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(body, '\n')) {
    double value;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ") &&
        absl::SimpleAtod(line, &value))
      return value;
  }
  return std::nullopt;
}

void CheckCertificate(absl::string_view metrics, Findings* findings) {
  const std::optional<double> expiry =
      Metric(metrics, "distro_aggregator_tls_certificate_expiry_timestamp_seconds");
  if (!expiry || *expiry <= 0) return;  // 0: does not expire
  const absl::Time ends = absl::UnixEpoch() + absl::Seconds(*expiry);
  const absl::Duration left = ends - absl::Now();
  findings->Add(
      "certificate",
      left <= absl::ZeroDuration() ? Result::kFailed
      : left < kCertificateSoon    ? Result::kWarning
                                   : Result::kOk,
      absl::StrCat("valid until ", absl::FormatTime("%Y-%m-%d", ends, absl::UTCTimeZone()), ", ",
                   absl::ToInt64Hours(left) / 24, " days"));
}

void CheckDisk(absl::string_view metrics, Findings* findings) {
  const std::optional<double> free = Metric(metrics, "distro_aggregator_data_dir_free_bytes");
  const std::optional<double> size = Metric(metrics, "distro_aggregator_data_dir_size_bytes");
  if (!free || !size || *size <= 0) return;
  // 0 files: the file system has no limit of them, or the aggregator is older.
  const double files = Metric(metrics, "distro_aggregator_data_dir_size_files").value_or(0);
  const double free_files = Metric(metrics, "distro_aggregator_data_dir_free_files").value_or(0);
  const bool low = *free < kDiskLow * *size || free_files < kDiskLow * files;
  std::string text = absl::StrCat(Bytes(*free), " of ", Bytes(*size), " are free");
  if (files > 0) absl::StrAppendFormat(&text, ", %.0f of %.0f inodes", free_files, files);
  findings->Add("disk", low ? Result::kWarning : Result::kOk, text);
}

void CheckHttp(const CheckOptions& options, Findings* findings) {
  const auto ready = HttpGet(options.http, "/readyz?verbose", options.timeout, kMaxHttpBytes);
  const std::string text =
      ready.ok() ? absl::StrJoin(absl::StrSplit(ready->body, '\n', absl::SkipEmpty()), "; ")
                 : std::string(ready.status().message());
  findings->Add("ready", ready.ok() && ready->status == 200 ? Result::kOk : Result::kFailed, text);

  const auto metrics = HttpGet(options.http, "/metrics", options.timeout, kMaxHttpBytes);
  if (!metrics.ok())
    return findings->Add("metrics", Result::kFailed, std::string(metrics.status().message()));
  const bool ours = metrics->status == 200 &&
                    absl::StrContains(metrics->content_type, "version=0.0.4") &&
                    absl::StrContains(metrics->body, "distro_aggregator_build_info");
  findings->Add("metrics", ours ? Result::kOk : Result::kFailed,
                ours ? absl::StrCat(metrics->body.size(), " bytes")
                     : absl::StrCat("no metrics of an aggregator: status ", metrics->status, ", ",
                                    metrics->content_type));
  CheckCertificate(metrics->body, findings);
  CheckDisk(metrics->body, findings);
}

absl::StatusOr<Report> BenchLink(const LinkBenchOptions& options,
                                 const std::function<void(absl::string_view)>& progress) {
  const absl::StatusOr<LinkMeasurement> measured = MeasureLink(options, progress);
  if (!measured.ok()) return Explain(measured.status(), {.channel = options.channel});
  Report report = {.text = LinkText(*measured), .json = LinkJson(*measured)};
  if (PredictLink(*measured).straggler)
    report.verdict =
        absl::AbortedError("the run's other workers would wait for a worker on this link");
  return report;
}

}  // namespace

absl::StatusOr<Report> CheckAggregator(const CheckOptions& options) {
  if (!options.http.empty())
    DISTRO_RETURN_IF_ERROR(Annotate(ParseHostPort(options.http).status(), "--http"));
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          OpenChannel(options.channel));
  Findings findings;
  CheckHealth(channel, options, &findings);
  CheckRun(channel, options, &findings);
  if (!options.http.empty()) CheckHttp(options, &findings);
  return findings.Make();
}

Command CheckCommand(const Console* console) {
  const auto options = std::make_shared<CheckOptions>();
  return {
      .name = "check",
      .arguments = {{"HOST:PORT", &options->channel.aggregator}},
      .summary =
          "Checks connection, health, run; with --http readiness, metrics, certificate, disk.",
      .flags = WithClientFlags(
          {{.name = "http",
            .value = &options->http,
            .help = "host:port of the aggregator's HTTP server, inside its network; empty: not "
                    "checked."},
           {.name = "require_run",
            .value = &options->require_run,
            .help = "A missing run is a failure; otherwise it is a warning."},
           {.name = "timeout", .value = &options->timeout, .help = "Time limit of each check."}},
          &options->channel),
      .help =
          R"(All checks are made, even after a failure; the exit code is then 5. Only warnings: plaintext, no run yet, a certificate
that expires within 14 days, less than a tenth of the disk's bytes or inodes free. `helm test` runs this. Role viewer or higher.

Examples:
  distroctl check aggregator.example:7700 --ca ca.pem --token_file viewer.token
  distroctl check 127.0.0.1:7700 --http 127.0.0.1:7701 --insecure --output json)",
      .run = [options, console]() -> absl::StatusOr<int> {
        if (options->timeout <= absl::ZeroDuration())
          return absl::InvalidArgumentError(absl::StrCat(
              "--timeout: ", absl::FormatDuration(options->timeout), " is not above 0"));
        return console->Show(CheckAggregator(*options));
      }};
}

Command BenchLinkCommand(const Console* console) {
  const auto options = std::make_shared<LinkBenchOptions>();
  return {
      .name = "bench-link",
      .arguments = {{"HOST:PORT", &options->channel.aggregator}},
      .summary = "Measures the link with payloads as large as the run's: would it be a straggler?",
      .flags = WithClientFlags(
          {{.name = "update_bytes",
            .value = ByteSize{&options->update_bytes},
            .help = "Payload of an update; 0: the run's, or that of 1.2 B parameters if there is "
                    "no run."},
           {.name = "result_bytes",
            .value = ByteSize{&options->result_bytes},
            .help = "Payload of a result; 0: the mean of the run's, or as above with 32 workers."},
           {.name = "transfer_limit",
            .value = &options->transfer_limit,
            .help = "Time limit of each of the three steps; the rate is of the bytes transferred "
                    "until then. 100ms to 60s."}},
          &options->channel),
      .help =
          R"(Run it on the machine that will train, before a GPU is committed. It uploads an update, downloads a result, then does both
at once on separate connections, as a worker does, and uses the lower rates. A round on this link takes at least the longer
of upload and download (their sum with overlap 0). If that is longer than the run's rounds take now, the other workers
would wait for this one: exit code 5. A run that is training shares the aggregator's link, so the figures are what a worker
would get. Role worker, archiver or admin; distro-worker bench-link does the same.

Example:
  distroctl bench-link aggregator.example:7700 --ca ca.pem --token_file w7.token)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(BenchLink(*options, console->progress));
      }};
}

}  // namespace distro::tools
