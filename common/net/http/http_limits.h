// Limits per client of the HTTP server: connections, waiting requests, and CPU time. Pure
// bookkeeping: the caller closes, refuses and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace distro {

// Decides which connection to close when there are too many in total or per peer. A new connection
// is always accepted, so clients that hold connections open cannot keep others out.
class HttpPlaces {
 public:
  // At most `all` connections, `of_peer` per peer, and `answer_bytes` of unsent responses.
  HttpPlaces(size_t all, size_t of_peer, size_t answer_bytes);

  // Adds a connection; `id` is larger than any before. Returns the connection to close, if any: one
  // of the same peer if the peer is at its limit, or one of all if the total is. It is the oldest
  // that has not sent its request, else the oldest.
  std::optional<uint64_t> Take(uint64_t id, const std::string& peer);
  // `id` has sent its request.
  void Asked(uint64_t id);
  // `id` starts to send a response of this many bytes. Returns a connection to close so that all
  // unsent responses fit: the oldest other one that is sending. Call again until it returns
  // nullopt. A response above the limit is sent when it is the only one.
  std::optional<uint64_t> Hold(uint64_t id, size_t bytes);
  void Leave(uint64_t id);

  const std::string& PeerOf(uint64_t id) const { return places_.at(id).peer; }

 private:
  struct Place {
    std::string peer;
    bool asked = false;
    size_t bytes = 0;
  };

  const size_t all_;
  const size_t of_peer_;
  const size_t answer_bytes_;
  std::map<uint64_t, Place> places_;  // the oldest first
};

// Requests that wait for a handler, served round-robin by peer: a peer with many requests delays
// only itself.
class HttpQueue {
 public:
  explicit HttpQueue(size_t size) : size_(size) {}

  // Adds a request. If the queue was full, removes and returns the request to refuse: the newest of
  // the peer with the most requests, or `id` itself if that is its peer.
  std::optional<uint64_t> Push(uint64_t id, const std::string& peer);
  // Removes the oldest request of the next peer; nullopt if none waits.
  std::optional<uint64_t> Pop();
  // Removes `id` if it waits.
  void Remove(uint64_t id);

 private:
  struct Waiting {
    std::string peer;
    std::deque<uint64_t> ids;  // the oldest first; never empty
  };

  const size_t size_;
  size_t waiting_ = 0;
  std::list<Waiting> peers_;  // in the order of their turns
};

// A CPU time budget: a burst, and then a share of one core. The caller measures and waits.
class CpuBudget {
 public:
  // `share` is above 0. The burst is available at first, and again after burst / share without
  // work.
  CpuBudget(double share, absl::Duration burst) : share_(share), burst_(burst), left_(burst) {}

  void Spend(absl::Duration used) { left_ -= used; }
  // How long to wait before the next work; 0 if there is no need to. `now` is
  // Clock::MonotonicNow().
  absl::Duration WaitAt(absl::Duration now);

 private:
  const double share_;
  const absl::Duration burst_;
  absl::Duration left_;  // negative: overdrawn
  absl::Duration counted_until_ = absl::InfiniteDuration();
};

}  // namespace distro
