// /healthz and /readyz of http_endpoint.h.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/http/http_endpoint.h"

namespace distro {

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
