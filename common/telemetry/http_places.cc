#include "common/telemetry/http_places.h"

#include <algorithm>

namespace distro {

HttpPlaces::HttpPlaces(size_t all, size_t of_peer, size_t answer_bytes)
    : all_(all), of_peer_(of_peer), answer_bytes_(answer_bytes) {}

std::optional<uint64_t> HttpPlaces::Take(uint64_t id, const std::string& peer) {
  const size_t same = std::count_if(places_.begin(), places_.end(),
                                    [&](const auto& place) { return place.second.peer == peer; });
  const bool peer_is_full = same >= of_peer_;
  std::optional<uint64_t> oldest;
  std::optional<uint64_t> silent;
  for (const auto& [other, place] : places_) {
    if (peer_is_full && place.peer != peer) continue;
    if (!oldest) oldest = other;
    if (!silent && !place.asked) silent = other;
  }
  const bool is_full = peer_is_full || places_.size() >= all_;
  places_[id].peer = peer;
  if (!is_full) return std::nullopt;
  return silent ? silent : oldest;
}

void HttpPlaces::Asked(uint64_t id) { places_.at(id).asked = true; }

std::optional<uint64_t> HttpPlaces::Hold(uint64_t id, size_t bytes) {
  places_.at(id).bytes = bytes;
  size_t held = 0;
  std::optional<uint64_t> oldest;
  for (const auto& [other, place] : places_) {
    held += place.bytes;
    if (!oldest && other != id && place.bytes > 0) oldest = other;
  }
  return held > answer_bytes_ ? oldest : std::nullopt;
}

void HttpPlaces::Leave(uint64_t id) { places_.erase(id); }

}  // namespace distro
