// A number that is not known is null in the page's JSON.
#pragma once

#include <optional>

#include "nlohmann/json.hpp"

namespace distro::server {

template <typename T>
nlohmann::json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace distro::server
