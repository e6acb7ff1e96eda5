#include "common/method/codec/prefix_code.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace distro {
namespace {

// The 2-bit tokens, then the 4-bit ones.
constexpr int kSame = 0, kLonger = 1, kShorter = 2, kEscape = 3;
constexpr int kUnused = 0, kRest = 14, kUnusedRun = 15;
constexpr CodeLength kFirstGuess = 6;
constexpr size_t kMinRun = 2, kMaxRun = 65;

// One level of package-merge: the leaves and the pairs of the level below, by ascending weight,
// leaves first among equals.
struct Level {
  std::vector<uint64_t> weights;
  std::vector<bool> is_leaf;
};

Level MergeLevel(absl::Span<const uint64_t> leaves, const Level& below) {
  Level level;
  size_t leaf = 0, pair = 0;
  while (leaf < leaves.size() || 2 * pair + 1 < below.weights.size()) {
    const bool has_pair = 2 * pair + 1 < below.weights.size();
    const uint64_t sum = has_pair ? below.weights[2 * pair] + below.weights[2 * pair + 1] : 0;
    const bool takes_leaf = leaf < leaves.size() && (!has_pair || leaves[leaf] <= sum);
    level.weights.push_back(takes_leaf ? leaves[leaf] : sum);
    level.is_leaf.push_back(takes_leaf);
    takes_leaf ? ++leaf : ++pair;
  }
  return level;
}

// The lengths for weights in ascending order: the optimal code under the limit (Larmore and
// Hirschberg 1990).
std::vector<CodeLength> OptimalLengths(absl::Span<const uint64_t> weights) {
  std::vector<Level> levels(1);
  for (int i = 0; i < kMaxCodeLength; ++i) levels.push_back(MergeLevel(weights, levels.back()));
  std::vector<CodeLength> lengths(weights.size(), 0);
  // The 2n - 2 lightest items of the last level are a complete code of n symbols.
  size_t taken = 2 * weights.size() - 2;
  for (size_t i = levels.size() - 1; i > 0; --i) {
    const auto begin = levels[i].is_leaf.begin();
    const auto leaves = static_cast<size_t>(std::count(begin, begin + taken, true));
    for (size_t leaf = 0; leaf < leaves; ++leaf) ++lengths[leaf];
    taken = 2 * (taken - leaves);
  }
  return lengths;
}

std::vector<size_t> UsedSymbols(absl::Span<const uint64_t> counts) {
  std::vector<size_t> used;
  for (size_t symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] > 0) used.push_back(symbol);
  }
  return used;
}

void WriteEscape(int token, BitWriter* writer) {
  writer->Write(kEscape, 2);
  writer->Write(token, 4);
}

void WriteUnused(size_t run, BitWriter* writer) {
  for (; run >= kMinRun; run -= std::min(run, kMaxRun)) {
    WriteEscape(kUnusedRun, writer);
    writer->Write(std::min(run, kMaxRun) - kMinRun, 6);
  }
  if (run == 1) WriteEscape(kUnused, writer);
}

// Writes the length of a used symbol; `last` is that of the one before.
void WriteUsed(CodeLength length, CodeLength last, BitWriter* writer) {
  if (length == kOnlySymbol) return WriteEscape(length, writer);
  if (length == last) return writer->Write(kSame, 2);
  if (length == last + 1) return writer->Write(kLonger, 2);
  if (length + 1 == last) return writer->Write(kShorter, 2);
  WriteEscape(length, writer);
}

// One token's length and how many symbols have it.
struct LengthRun {
  int length;
  size_t run;
};
LengthRun ReadToken(BitReader* reader, CodeLength last, size_t left) {
  const uint64_t token = reader->Read(2);
  if (token == kSame) return {last, 1};
  if (token == kLonger) return {last + 1, 1};
  if (token == kShorter) return {last - 1, 1};
  const auto escape = static_cast<int>(reader->Read(4));
  if (escape == kRest) return {0, left};
  if (escape == kUnusedRun) return {0, reader->Read(6) + kMinRun};
  return {escape, 1};
}

uint16_t Reverse(uint32_t code, int bits) {
  uint16_t reversed = 0;
  for (int i = 0; i < bits; ++i) reversed |= ((code >> i) & 1) << (bits - 1 - i);
  return reversed;
}

// No symbol, one only symbol, or lengths whose 2^-length sum to one.
bool IsComplete(absl::Span<const CodeLength> lengths) {
  size_t used = 0, only = 0, sum = 0;
  for (CodeLength length : lengths) {
    used += length != 0;
    only += length == kOnlySymbol;
    if (length != 0 && length != kOnlySymbol) sum += kCodeTableSize >> length;
  }
  return used == 0 || (only == 1 ? used == 1 : only == 0 && sum == kCodeTableSize);
}

}  // namespace

std::vector<CodeLength> CodeLengths(absl::Span<const uint64_t> counts) {
  std::vector<CodeLength> lengths(counts.size(), 0);
  std::vector<size_t> used = UsedSymbols(counts);
  if (used.size() == 1) lengths[used[0]] = kOnlySymbol;
  if (used.size() <= 1) return lengths;
  // Ties by symbol: the decoder must derive the same code from the same counts.
  std::sort(used.begin(), used.end(), [&](size_t a, size_t b) {
    return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
  });
  std::vector<uint64_t> weights;
  for (size_t symbol : used) weights.push_back(counts[symbol]);
  const std::vector<CodeLength> optimal = OptimalLengths(weights);
  for (size_t i = 0; i < used.size(); ++i) lengths[used[i]] = optimal[i];
  return lengths;
}

void WriteCodeLengths(absl::Span<const CodeLength> lengths, BitWriter* writer) {
  CodeLength last = kFirstGuess;
  for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
    size_t used = symbol;
    while (used < lengths.size() && lengths[used] == 0) ++used;
    if (used == lengths.size()) return WriteEscape(kRest, writer);
    WriteUnused(used - symbol, writer);
    WriteUsed(lengths[used], last, writer);
    last = lengths[used];
    symbol = used;
  }
}

absl::Status ReadCodeLengths(BitReader* reader, absl::string_view what,
                             absl::Span<CodeLength> lengths) {
  CodeLength last = kFirstGuess;
  for (size_t symbol = 0; symbol < lengths.size();) {
    const size_t left = lengths.size() - symbol;
    const LengthRun next = ReadToken(reader, last, left);
    if (next.run > left || next.length > kOnlySymbol) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": ", next.run, " symbols of length ",
                                                     next.length, " after ", symbol, " of ",
                                                     lengths.size()));
    }
    std::fill_n(lengths.begin() + symbol, next.run, static_cast<CodeLength>(next.length));
    if (next.length != 0) last = static_cast<CodeLength>(next.length);
    symbol += next.run;
  }
  // Bits beyond the end are read as zeros, so the loop has ended, and the cut shows only here.
  if (reader->past_end())
    return absl::InvalidArgumentError(absl::StrCat(what, ": the code lengths are cut off"));
  // Otherwise a bit pattern of the decoding table would have no symbol, or two.
  if (!IsComplete(lengths))
    return absl::InvalidArgumentError(absl::StrCat(what, ": the code is not complete"));
  return absl::OkStatus();
}

std::vector<uint16_t> PrefixCodes(absl::Span<const CodeLength> lengths) {
  std::vector<uint16_t> codes(lengths.size(), 0);
  uint32_t next = 0;
  for (int length = 1; length <= kMaxCodeLength; ++length) {
    next <<= 1;
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] == length) codes[symbol] = Reverse(next++, length);
    }
  }
  return codes;
}

}  // namespace distro
