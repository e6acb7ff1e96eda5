// Optimal prefix codes. Their code lengths are stored with the data. Everything is integer
// arithmetic, so the same counts give the same code on every machine. Pure functions.
//
// An alphabet with one used symbol codes it in 0 bits. Codes are canonical: shorter codes first,
// then smaller symbols; the code's first bit is the first in the stream.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/method/codec/bit_stream.h"

namespace distro {

inline constexpr int kMaxCodeLength = 12;
inline constexpr uint32_t kCodeTableSize = 1u << kMaxCodeLength;

// A length: 0 for an unused symbol, 1..kMaxCodeLength, or kOnlySymbol.
using CodeLength = uint8_t;
inline constexpr CodeLength kOnlySymbol = 13;

// The lengths of an optimal code under the limit (package-merge; symbols of equal count in
// ascending order, a symbol before a pair of equal weight). Requires at most 2^kMaxCodeLength used
// symbols.
std::vector<CodeLength> CodeLengths(absl::Span<const uint64_t> counts);

// Writes lengths as tokens of 2 bits: 0 the length of the previous used symbol (6 for the first), 1
// one more, 2 one less, 3 an escape. The 4 bits after an escape mean: 0 an unused symbol; 1..12 a
// length; 13 the only symbol; 14 all the rest is unused; 15, followed by 6 bits r, r+2 unused
// symbols. Left to right it uses 14 if possible, else the longest possible run of unused symbols,
// else a 2-bit token if possible.
void WriteCodeLengths(absl::Span<const CodeLength> lengths, BitWriter* writer);
// Fills `lengths`. InvalidArgument: the tokens do not describe exactly as many symbols, or their
// code is not complete. Does not check that the tokens are those of WriteCodeLengths: the caller
// compares. `what` names the alphabet.
absl::Status ReadCodeLengths(BitReader* reader, absl::string_view what,
                             absl::Span<CodeLength> lengths);

// The code of each symbol, first bit lowest; 0 for unused and only symbols. Requires lengths of a
// complete code.
std::vector<uint16_t> PrefixCodes(absl::Span<const CodeLength> lengths);

// The number of bits of a symbol's code.
inline int CodeBits(CodeLength length) { return length == kOnlySymbol ? 0 : length; }

}  // namespace distro
