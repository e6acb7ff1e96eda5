#include "common/net/http/http_limits.h"

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

std::optional<uint64_t> HttpQueue::Push(uint64_t id, const std::string& peer) {
  auto own = std::find_if(peers_.begin(), peers_.end(),
                          [&](const Waiting& waiting) { return waiting.peer == peer; });
  if (own == peers_.end()) own = peers_.insert(peers_.end(), {peer, {}});
  own->ids.push_back(id);
  if (++waiting_ <= size_) return std::nullopt;
  // On a tie, the newcomer's own peer is chosen.
  auto most = own;
  for (auto it = peers_.begin(); it != peers_.end(); ++it) {
    if (it->ids.size() > most->ids.size()) most = it;
  }
  const uint64_t refused = most->ids.back();
  Remove(refused);
  return refused;
}

std::optional<uint64_t> HttpQueue::Pop() {
  if (peers_.empty()) return std::nullopt;
  const uint64_t id = peers_.front().ids.front();
  peers_.splice(peers_.end(), peers_, peers_.begin());
  Remove(id);
  return id;
}

void HttpQueue::Remove(uint64_t id) {
  for (auto it = peers_.begin(); it != peers_.end(); ++it) {
    const size_t removed = std::erase(it->ids, id);
    if (removed == 0) continue;
    waiting_ -= removed;
    if (it->ids.empty()) peers_.erase(it);
    return;
  }
}

absl::Duration CpuBudget::WaitAt(absl::Duration now) {
  if (now > counted_until_) left_ = std::min(burst_, left_ + (now - counted_until_) * share_);
  counted_until_ = now;
  return left_ > absl::ZeroDuration() ? absl::ZeroDuration()
                                      : std::max(-left_ / share_, absl::Milliseconds(1));
}

}  // namespace distro
