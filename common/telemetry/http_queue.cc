#include "common/telemetry/http_queue.h"

#include <algorithm>

namespace distro {

std::optional<uint64_t> HttpQueue::Push(uint64_t id, const std::string& peer) {
  auto own = std::find_if(peers_.begin(), peers_.end(),
                          [&](const Waiting& waiting) { return waiting.peer == peer; });
  if (own == peers_.end()) own = peers_.insert(peers_.end(), {peer, {}});
  own->ids.push_back(id);
  if (++waiting_ <= size_) return std::nullopt;
  // Where the newcomer waits as often as any other, it is its own.
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

}  // namespace distro
