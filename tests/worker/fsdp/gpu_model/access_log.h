// Finds accesses of memory that nothing orders: of one range, by two operations, one of which
// writes. Orders are vector clocks. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace distro::worker::testing {

// By stream, how many of its operations have happened before.
class VectorClock {
 public:
  void Join(const VectorClock& other);
  // Counts an operation of the stream; returns its number there, from 1.
  uint64_t Tick(size_t stream);
  bool Has(size_t stream, uint64_t number) const;

 private:
  std::vector<uint64_t> counts_;
};

struct Access {
  const void* begin = nullptr;
  size_t bytes = 0;
  bool writes = false;
};

class AccessLog {
 public:
  // `clock` is the operation's, which is number `number` of its stream. Returns a sentence for each
  // earlier operation that has no order with this one.
  std::vector<std::string> Add(const std::string& operation, size_t stream, uint64_t number,
                               const VectorClock& clock, const std::vector<Access>& accesses);

 private:
  struct Entry {
    std::string operation;
    size_t stream;
    uint64_t number;
    Access access;
  };
  std::vector<Entry> entries_;
};

}  // namespace distro::worker::testing
