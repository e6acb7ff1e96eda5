#include "server/status/status_routes.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/version.h"
#include "server/status/page_assets.h"
#include "server/status/status_report.h"

namespace distro::server {
namespace {

// Allows the page to load, run and contact only what this port serves.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string ContentTypeOf(absl::string_view name) {
  if (absl::EndsWith(name, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(name, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  return "text/plain; charset=utf-8";
}

HttpResponse Answer(std::string content_type, std::string body) {
  return {.content_type = std::move(content_type),
          .body = std::move(body),
          .headers = {{"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-store"}}};
}

HttpRoute AssetRoute(std::string path, const PageAsset& asset) {
  return {std::move(path), [asset](const HttpRequest&) {
            return Answer(ContentTypeOf(asset.name), std::string(asset.bytes));
          }};
}

std::string PathOf(absl::string_view name) {
  if (name == "index.html") return "/";
  if (absl::EndsWith(name, ".md"))
    return absl::StrCat("/runbooks/", absl::StripSuffix(name, ".md"));
  return absl::StrCat("/page/", name);
}

std::string Status(const StatusSources& sources) {
  const MetricValues metrics = sources.metrics();
  StatusFacts facts{.metrics = &metrics,
                    .reports = sources.reports->List(sources.clock->MonotonicNow()),
                    .rates = sources.rates,
                    .ready = sources.ready(),
                    .version = std::string(Version()),
                    .now = sources.clock->WallNow()};
  sources.rates->Take(facts.reports);
  facts.status.state = v1::RUN_STATE_EMPTY;
  facts.status.reason = "there is no run yet: distroctl run create";
  if (const RoundManager* manager = sources.host->manager()) {
    facts.run = &manager->run();
    facts.status = manager->status();
    facts.history = sources.history->View();
  }
  return StatusJson(facts);
}

}  // namespace

std::vector<HttpRoute> StatusRoutes(const StatusSources& sources) {
  std::vector<HttpRoute> routes;
  for (const PageAsset& asset : PageAssets()) {
    routes.push_back(AssetRoute(PathOf(asset.name), asset));
    if (asset.name == "favicon.svg") routes.push_back(AssetRoute("/favicon.ico", asset));
  }
  routes.push_back({"/status.json", [sources](const HttpRequest&) {
                      return Answer("application/json", Status(sources));
                    }});
  return routes;
}

}  // namespace distro::server
