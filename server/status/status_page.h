// The page on `/`: the run, its round, its workers and what it waits for, in plain HTML without scripts. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/round/round_manager.h"

namespace distro::server {

// `run_id` is empty and `rounds` 0 when there is no run.
std::string StatusPage(absl::string_view run_id, uint64_t rounds, const RunStatus& status);

// Text as HTML: & < > " ' replaced.
std::string EscapeHtml(absl::string_view text);

}  // namespace distro::server
