// Checksums of bytes: XXH3-64 to detect damage, SHA-256 to identify content. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace distro {

// XXH3-64 with seed 0 (libxxhash).
uint64_t Xxh3(absl::string_view bytes);
// The same for the concatenation of the pieces, which is not built in memory.
uint64_t Xxh3(absl::Span<const absl::string_view> pieces);

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest Sha256(absl::string_view bytes);

// The digest as the bytes that messages have; borrowed.
inline absl::string_view AsBytes(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// SHA-256 of bytes that arrive in pieces. Not thread-safe; Finish() may be called once.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(Sha256Stream&&) noexcept;
  Sha256Stream& operator=(Sha256Stream&&) noexcept;

  void Update(absl::string_view bytes);
  Sha256Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Lower-case hexadecimal, two digits a byte; 16 digits for a 64-bit hash.
std::string ToHex(const Sha256Digest& digest);
std::string ToHex(uint64_t hash);

// XXH3-64 of bytes that arrive in pieces. Not thread-safe.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();

  void Update(absl::string_view bytes);
  // The hash of all bytes added so far.
  uint64_t Digest() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace distro
