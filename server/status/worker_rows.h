// The workers of /status.json: one row each, the ones with problems first. Pure.
#pragma once

#include "nlohmann/json.hpp"
#include "server/status/status_report.h"

namespace distro::server {

nlohmann::json WorkerRows(const StatusFacts& facts);

}  // namespace distro::server
