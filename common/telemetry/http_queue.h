// Requests that wait for a handler, peers in turns: who asks a thousand times waits for itself.
// Pure bookkeeping, of the I/O thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>

namespace distro {

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

}  // namespace distro
