#include "server/status/status_page.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/checksum.h"

namespace distro::server {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>distro-aggregator</title>
<style>body{font:16px/1.5 sans-serif;margin:2em auto;max-width:60em;padding:0 1em;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3em .8em .3em 0;border-bottom:1px solid #ccc}
td.n,th.n{text-align:right}code{font-size:.95em}</style></head><body><h1>distro-aggregator</h1>
)";

std::string StateName(v1::RunState state) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::RunState_Name(state), "RUN_STATE_"));
}

std::string Row(absl::string_view name, absl::string_view value) {
  return absl::StrCat("<tr><th scope=\"row\">", name, "</th><td>", EscapeHtml(value),
                      "</td></tr>\n");
}

std::string WorkerRow(const Worker& worker, absl::Duration now) {
  const double silence = absl::ToDoubleSeconds(now - worker.last_seen);
  return absl::StrCat("<tr><td><code>", EscapeHtml(worker.name), "</code></td><td>",
                      MemberStateName(worker.state), "</td><td>", EscapeHtml(worker.reason),
                      "</td><td class=\"n\">", worker.next_round, "</td><td class=\"n\">",
                      absl::StrFormat("%.4f", worker.telemetry.loss()), "</td><td class=\"n\">",
                      absl::StrFormat("%.0f s", silence), "</td></tr>\n");
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string StatusPage(absl::string_view run_id, uint64_t rounds, const RunStatus& status) {
  std::string page =
      absl::StrCat(kHead, "<table>\n", Row("run", run_id.empty() ? "none yet" : run_id),
                   Row("state", StateName(status.state)), Row("reason", status.reason));
  if (!run_id.empty()) {
    absl::StrAppend(&page, Row("round", absl::StrCat(status.round.value(), " of ", rounds)),
                    Row("epoch", absl::StrCat(status.epoch.value())),
                    Row("log hash", ToHex(status.log_hash)));
  }
  absl::StrAppend(&page, "</table>\n<h2>Workers</h2>\n");
  if (status.workers.empty())
    return absl::StrCat(page, "<p>None has joined yet.</p>\n</body></html>\n");
  absl::StrAppend(
      &page,
      "<table><tr><th>name</th><th>state</th><th>reason</th><th class=\"n\">next round</th>"
      "<th class=\"n\">loss</th><th class=\"n\">last heard</th></tr>\n");
  for (const Worker& worker : status.workers) absl::StrAppend(&page, WorkerRow(worker, status.now));
  return absl::StrCat(page, "</table>\n</body></html>\n");
}

}  // namespace distro::server
