// /metrics, /healthz and /readyz of http_endpoint.h.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/telemetry/http_endpoint.h"
#include "common/telemetry/metric_families.h"

namespace distro {

HttpRoute MetricsRoute(std::string path,
                       std::function<std::vector<prometheus::MetricFamily>()> collect) {
  return {std::move(path), [collect = std::move(collect)](const HttpRequest&) {
            return HttpResponse{200, kMetricsContentType, MetricsText(collect())};
          }};
}

HttpRoute HealthRoute() {
  return {"/healthz", [](const HttpRequest&) { return HttpResponse{.body = "ok\n"}; },
          /*at_once=*/true};
}

HttpRoute ReadyRoute(std::function<ReadyReport()> report) {
  return {"/readyz",
          [report = std::move(report)](const HttpRequest& request) {
            const ReadyReport ready = report();
            HttpResponse response;
            response.status = ready.ready ? 200 : 503;
            response.body = ready.ready ? "ready\n" : "not ready\n";
            if (!request.query.contains("verbose")) return response;
            for (const ReadyReport::Check& check : ready.checks) {
              absl::StrAppend(&response.body, check.ok ? "[+] " : "[-] ", check.name,
                              check.detail.empty() ? "" : ": ", check.detail, "\n");
            }
            return response;
          },
          /*at_once=*/true};
}

}  // namespace distro
