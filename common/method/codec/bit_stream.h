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

  // Requires count <= 32 and value < 2^count.
  void Write(uint64_t value, int count) {
    pending_ |= value << pending_bits_;
    pending_bits_ += count;
    if (pending_bits_ >= 32) Flush(4);
  }
  // Zero bits up to the next whole byte; nothing is pending afterwards.
  void AlignToByte() {
    Flush((pending_bits_ + 7) / 8);
    pending_bits_ = 0;
    out_->append(buffer_, buffered_);
    buffered_ = 0;
  }

 private:
  void Flush(int bytes) {
    std::memcpy(buffer_ + buffered_, &pending_, sizeof(pending_));
    buffered_ += static_cast<size_t>(bytes);
    pending_ = bytes == 8 ? 0 : pending_ >> (8 * bytes);
    pending_bits_ -= 8 * bytes;
    if (buffered_ + sizeof(pending_) <= sizeof(buffer_)) return;
    out_->append(buffer_, buffered_);
    buffered_ = 0;
  }

  std::string* const out_;
  uint64_t pending_ = 0;
  int pending_bits_ = 0;
  size_t buffered_ = 0;
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
  uint64_t Peek() const {
    const uint64_t byte = bit_ / 8;
    uint64_t window = 0;
    if (byte + 8 <= bytes_.size()) {
      std::memcpy(&window, bytes_.data() + byte, 8);
    } else if (byte < bytes_.size()) {
      std::memcpy(&window, bytes_.data() + byte, bytes_.size() - byte);
    }
    return window >> (bit_ % 8);
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
