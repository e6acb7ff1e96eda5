// Limits of one client of the HTTP side: connections, requests, and processor time for answers.
// Pure bookkeeping for the I/O thread; it closes, refuses and waits for nothing itself.
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

// Who makes room: connections are counted in all and per peer, and a newcomer always gets in, so
// that clients that hold their connections keep nobody away.
class HttpPlaces {
 public:
  // At most `all` connections, `of_peer` of one peer, and answers of `answer_bytes` that clients
  // have not taken yet.
  HttpPlaces(size_t all, size_t of_peer, size_t answer_bytes);

  // `id` is larger than any before; `peer` names whom it counts for. The result is the connection
  // to close, if there is one: of those of the same peer when that has all its places, otherwise of
  // all when there is none left; the oldest that has not sent its request, else the oldest.
  std::optional<uint64_t> Take(uint64_t id, const std::string& peer);
  // The request of `id` is there.
  void Asked(uint64_t id);
  // `id` begins to send so many bytes. The result is the connection to close so that all that is
  // held fits, the oldest other one that sends; asked again until it is none. An answer that alone
  // is above the limit is sent alone.
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

// Requests that wait for a handler, peers in turns: who asks a thousand times waits for itself.
class HttpQueue {
 public:
  explicit HttpQueue(size_t size) : size_(size) {}

  // The result is whom to refuse, if the queue was full: the newest of the peer that waits most
  // often, `id` itself where that is its own peer. Who is refused does not wait any more.
  std::optional<uint64_t> Push(uint64_t id, const std::string& peer);
  // The oldest of the peer whose turn it is; nothing: nobody waits.
  std::optional<uint64_t> Pop();
  // Whether or not it waits.
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

// How much processor time somebody may have made used: a burst, and from then on a share of one
// core. The caller measures and waits.
class CpuBudget {
 public:
  // `share` is above 0; the burst is there at first and again after burst / share without work.
  CpuBudget(double share, absl::Duration burst) : share_(share), burst_(burst), left_(burst) {}

  void Spend(absl::Duration used) { left_ -= used; }
  // How long to wait before the next work; zero: none. `now` is Clock::MonotonicNow().
  absl::Duration WaitAt(absl::Duration now);

 private:
  const double share_;
  const absl::Duration burst_;
  absl::Duration left_;  // below zero: what was used before it was there
  absl::Duration counted_until_ = absl::InfiniteDuration();
};

}  // namespace distro
