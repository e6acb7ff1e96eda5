#include "tools/distroctl/check_connection.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/utc_time.h"
#include "common/client/diagnosis.h"
#include "common/client/options/client_flags.h"

namespace distro::tools {
namespace {

nlohmann::json CertificateJson(const CertificateFacts& facts) {
  return {{"subject", facts.subject},
          {"issuer", facts.issuer},
          {"names", facts.names},
          {"not_before", UtcText(facts.not_before)},
          {"not_after", UtcText(facts.not_after)}};
}

nlohmann::json StepsJson(const ConnectionLook& look) {
  nlohmann::json steps = nlohmann::json::array();
  for (const ProbeStep& step : look.steps) {
    steps.push_back({{"step", step.name},
                     {"result", step.ok ? "ok" : "failed"},
                     {"seconds", absl::ToDoubleSeconds(step.took)},
                     {"seen", step.seen}});
  }
  return steps;
}

}  // namespace

Report ConnectionReport(const ConnectionLook& look) {
  Table table({"STEP", "RESULT", ">TIME", "SEEN"});
  for (const ProbeStep& step : look.steps) {
    table.Add({step.name, step.ok ? "ok" : "failed",
               absl::StrFormat("%.0fms", absl::ToDoubleMilliseconds(step.took)), step.seen});
  }
  Report report = {.text = table.Text(),
                   .json = {{"ok", !look.fault},
                            {"aggregator", look.address},
                            {"steps", StepsJson(look)},
                            {"addresses", look.ip_addresses},
                            {"tls", look.tls_version},
                            {"alpn", look.alpn},
                            {"health", look.health}}};
  if (look.certificate) report.json["certificate"] = CertificateJson(*look.certificate);
  if (look.proxy) {
    absl::StrAppend(&report.text, "\n", look.proxy->variable,
                    " names a proxy: calls and `health` go through it, the other steps do not");
    report.json["proxy_variable"] = look.proxy->variable;
  }
  if (!look.fault) return report;
  report.json["fault"] = {{"reason", RuleOf(look.fault->kind).reason},
                          {"seen", look.fault->what},
                          {"remedy", look.fault->remedy}};
  report.verdict = StatusOf(*look.fault);
  return report;
}

absl::StatusOr<Report> CheckConnection(const ProbeOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const ConnectionLook look, Diagnose(options));
  return ConnectionReport(look);
}

Command CheckConnectionCommand(const Console* console) {
  const auto options = std::make_shared<ProbeOptions>();
  return {
      .name = "check-connection",
      .arguments = {{"HOST:PORT", &options->channel.aggregator}},
      .summary = "Tests the path to an aggregator: name, connection, TLS, HTTP/2, health.",
      .flags = WithClientFlags({{.name = "timeout",
                                 .value = &options->step_timeout,
                                 .help = "Time limit of each step."}},
                               &options->channel),
      .help =
          R"(Stops at the first step that fails; where calls go through a proxy, health follows. The message has the observation
and the remedy, and the exit code is that of the fault (docs/troubleshooting.md): 6 if trying again may help, 13 to 17
if a flag or a certificate must be fixed. The certificate is shown with its CA, names and dates even if it is refused.
Needs no credential, and does not detect one that the aggregator does not know: `distroctl check` does.

Examples:
  distroctl check-connection aggregator.example:7700 --ca ca.pem
  distroctl check-connection 127.0.0.1:7700 --insecure --output json)",
      .run = [options, console]() -> absl::StatusOr<int> {
        if (options->step_timeout <= absl::ZeroDuration())
          return absl::InvalidArgumentError(absl::StrCat(
              "--timeout: ", absl::FormatDuration(options->step_timeout), " is not above 0"));
        return console->Show(CheckConnection(*options));
      }};
}

}  // namespace distro::tools
