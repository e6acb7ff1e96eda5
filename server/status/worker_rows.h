// The workers of /status.json: one row each, the ones with problems first. Pure.
#pragma once

#include <optional>

#include "nlohmann/json.hpp"
#include "server/status/status_report.h"

namespace distro::server {

// The value, or null in JSON if it is unknown.
template <typename T>
nlohmann::json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json WorkerRows(const StatusFacts& facts);

}  // namespace distro::server
