// The arrays of a pending update as bytes, as a state file has them: numbers of some blocks, block
// after block. Pure.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace distro::worker {

// The pending update of consecutive blocks: their bytes in each of the rule's block arrays, in host
// memory.
using BlockBytes = std::vector<std::string>;

// The same, borrowed, where each array may be in several pieces: [arrays][pieces].
using BlockPieces = std::vector<std::vector<absl::string_view>>;
inline BlockPieces Borrow(const BlockBytes& blocks) {
  BlockPieces pieces;
  for (const std::string& array : blocks) pieces.push_back({array});
  return pieces;
}

template <typename T>
absl::string_view BytesOf(absl::Span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

// The numbers of all pieces; bytes may have any alignment.
template <typename T>
std::vector<T> NumbersOf(absl::Span<const absl::string_view> pieces) {
  size_t bytes = 0;
  for (const absl::string_view piece : pieces) bytes += piece.size();
  std::vector<T> numbers(bytes / sizeof(T));
  auto* to = reinterpret_cast<char*>(numbers.data());
  for (const absl::string_view piece : pieces) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  return numbers;
}

}  // namespace distro::worker
