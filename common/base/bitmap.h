// Bits in bytes, as records have them: bit i is in byte i / 8, with value 1 << i % 8; unused bits
// are 0. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace distro {

inline constexpr size_t BitmapBytes(size_t bits) { return (bits + 7) / 8; }

inline std::string ToBitmap(const std::vector<bool>& bits) {
  std::string bytes(BitmapBytes(bits.size()), '\0');
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << i % 8);
  }
  return bytes;
}

// Requires i / 8 < bitmap.size().
inline bool BitOf(absl::string_view bitmap, size_t i) {
  return (static_cast<uint8_t>(bitmap[i / 8]) >> i % 8) & 1;
}

}  // namespace distro
