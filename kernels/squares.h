// The order in which squares of f32 numbers are added in f64, the same on every device: the numbers
// are divided into pieces of kPiece. In a piece, the numbers j, j + kPieceSums, ... make sum j;
// then these are added in halves: 0 + 128, 1 + 129, ..., 0 + 64, ... A square of an f32 is exact in
// f64.
#pragma once

#include <cstdint>

namespace distro {

inline constexpr int64_t kPiece = 8192;
inline constexpr int kPieceSums = 256;

constexpr int64_t PiecesOf(int64_t elements) { return (elements + kPiece - 1) / kPiece; }

}  // namespace distro
