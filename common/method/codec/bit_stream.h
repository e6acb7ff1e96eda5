// Bits of a byte string, least significant first: bit i is bit i%8 of byte i/8.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace distro {

// Appends bits to a string it borrows. The string has them all after AlignToByte. Not thread-safe.
class BitWriter {
 public:
  explicit BitWriter(std::string* out) : out_(out) {}

  // Requires count <= kMostBits and value < 2^count.
  static constexpr uint32_t kMostBits = 56;
  void Write(uint64_t value, uint32_t count) {
    pending_.Write(value, count, buffer_);
    if (pending_.byte > sizeof(buffer_) - sizeof(uint64_t)) Flush();
  }
  // The same for `times` values: next(most, &value, &count) joins at least 1 and at most `most` of
  // them to one that Write accepts, and returns how many. Returns `next` as it is then: a copy
  // stays in registers.
  template <typename Next>
  Next WriteEach(size_t times, Next next) {
    while (times > 0) {
      // A value adds at most 7 bytes.
      const size_t some =
          std::min(times, (sizeof(buffer_) - sizeof(uint64_t) - pending_.byte) / 7 + 1);
      Pending pending = pending_;  // also a copy
      for (size_t written = 0; written < some;) {
        uint64_t value;
        uint32_t count;
        written += next(some - written, &value, &count);
        pending.Write(value, count, buffer_);
      }
      pending_ = pending;
      times -= some;
      if (pending_.byte > sizeof(buffer_) - sizeof(uint64_t)) Flush();
    }
    return next;
  }
  // Zero bits up to the next whole byte; nothing is pending afterwards.
  void AlignToByte() {
    if (pending_.count > 0) Write(0, 8 - pending_.count);
    Flush();
  }

 private:
  struct Pending {
    uint64_t bits = 0;
    uint32_t count = 0;  // below 8
    size_t byte = 0;     // of the buffer, where they go

    void Write(uint64_t value, uint32_t more, char* buffer) {
      bits |= value << count;
      count += more;
      std::memcpy(buffer + byte, &bits, sizeof(bits));
      byte += count / 8;
      bits >>= count / 8 * 8;
      count %= 8;
    }
  };
  void Flush() {
    out_->append(buffer_, pending_.byte);
    pending_.byte = 0;
  }

  std::string* const out_;
  Pending pending_;
  char buffer_[512];  // so that the string grows rarely
};

// Reads bits from a borrowed string. Reading past the end gives zeros; the caller compares bit()
// with the expected end. Not thread-safe.
class BitReader {
 public:
  explicit BitReader(absl::string_view bytes, uint64_t bit = 0) : bytes_(bytes), bit_(bit) {}

  uint64_t bit() const { return bit_; }
  bool past_end() const { return bit_ > 8 * uint64_t{bytes_.size()}; }
  // At least the next 57 bits, the first at the bottom.
  uint64_t Peek() const { return PeekAt(bytes_, bit_); }
  static uint64_t PeekAt(absl::string_view bytes, uint64_t bit) {
    const uint64_t byte = bit / 8;
    uint64_t window = 0;
    if (byte + 8 <= bytes.size()) {
      std::memcpy(&window, bytes.data() + byte, 8);
    } else if (byte < bytes.size()) {
      std::memcpy(&window, bytes.data() + byte, bytes.size() - byte);
    }
    return window >> (bit % 8);
  }
  void Skip(uint64_t bits) { bit_ += bits; }
  // Requires count <= 57.
  uint64_t Read(int count) {
    const uint64_t value = Peek() & ((uint64_t{1} << count) - 1);
    Skip(count);
    return value;
  }

 private:
  absl::string_view bytes_;
  uint64_t bit_;
};

}  // namespace distro
