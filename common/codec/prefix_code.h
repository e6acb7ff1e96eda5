// Optimal prefix codes whose parameters, the code lengths, travel with the data. Everything is integer arithmetic, so
// the same counts give the same code on every machine. Pure functions.
//
// An alphabet with one used symbol codes it in 0 bits. Codes are canonical: shorter codes first, then smaller symbols;
// the code's first bit is the first in the stream.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/bit_stream.h"

namespace distro {

inline constexpr int kMaxCodeLength = 11;
inline constexpr uint32_t kCodeTableSize = 1u << kMaxCodeLength;

// A length: 0 for an unused symbol, 1..kMaxCodeLength, or kOnlySymbol.
using CodeLength = uint8_t;
inline constexpr CodeLength kOnlySymbol = 12;

// The lengths of an optimal code (Huffman; the two lightest are joined, among equals the symbol or node made first). When a code would be longer
// than kMaxCodeLength all counts c > 0 become c/2 | 1 and it starts again.
std::vector<CodeLength> CodeLengths(absl::Span<const uint64_t> counts);

// Lengths as tokens of 4 bits: 1..11 a length; 12 the only symbol; 0 and 4 bits r: r+1 unused symbols; 13 and 8 bits r: r+17
// of them; 14: all the rest is unused. A run of unused symbols takes 14 when it reaches the end, else 13 while 17 or more are left
// (272 at most), else 0.
void WriteCodeLengths(absl::Span<const CodeLength> lengths, BitWriter* writer);
// Fills `lengths`. InvalidArgument: the tokens do not describe exactly as many symbols, or their code
// is not complete. Other tokens than WriteCodeLengths would choose are accepted: the caller
// compares. `what` names the alphabet.
absl::Status ReadCodeLengths(BitReader* reader, absl::string_view what,
                             absl::Span<CodeLength> lengths);

// The code of each symbol, first bit lowest; 0 for unused and only symbols. Requires lengths of a complete code.
std::vector<uint16_t> PrefixCodes(absl::Span<const CodeLength> lengths);

// The number of bits of a symbol's code.
inline int CodeBits(CodeLength length) { return length == kOnlySymbol ? 0 : length; }

}  // namespace distro
