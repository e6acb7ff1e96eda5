// Who makes room on the HTTP side: connections are counted in all and per peer, and a newcomer
// always gets in, so that clients that hold their connections keep nobody away. Pure bookkeeping,
// of the I/O thread; it closes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace distro {

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

}  // namespace distro
