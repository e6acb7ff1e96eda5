#include "common/codec/prefix_code.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace distro {
namespace {

constexpr int kShortRun = 0, kLongRun = 13, kRest = 14;

struct Node {
  uint64_t count;
  int parent = -1;
};

// Nodes of the tree over the used symbols, leaves first in ascending (count, symbol), each pointing to its parent; the last is the root.
std::vector<Node> JoinLightest(absl::Span<const uint64_t> sorted_counts) {
  const size_t leaves = sorted_counts.size();
  std::vector<Node> nodes;
  nodes.reserve(2 * leaves);
  for (uint64_t count : sorted_counts) nodes.push_back({count});
  size_t leaf = 0, inner = leaves;
  const auto take_lightest = [&] {
    const bool from_leaves =
        leaf < leaves && (inner == nodes.size() || nodes[leaf].count <= nodes[inner].count);
    return from_leaves ? leaf++ : inner++;
  };
  while (nodes.size() < 2 * leaves - 1) {
    const size_t a = take_lightest();
    const size_t b = take_lightest();
    nodes[a].parent = nodes[b].parent = static_cast<int>(nodes.size());
    nodes.push_back({nodes[a].count + nodes[b].count});
  }
  return nodes;
}

// The depth of each leaf, in the order of `sorted_counts`.
std::vector<int> Depths(absl::Span<const uint64_t> sorted_counts) {
  const std::vector<Node> nodes = JoinLightest(sorted_counts);
  std::vector<int> depth(nodes.size(), 0);
  for (size_t i = nodes.size() - 1; i-- > 0;) depth[i] = depth[nodes[i].parent] + 1;
  depth.resize(sorted_counts.size());
  return depth;
}

std::vector<size_t> UsedSymbols(absl::Span<const uint64_t> counts) {
  std::vector<size_t> used;
  for (size_t symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] > 0) used.push_back(symbol);
  }
  return used;
}

void WriteUnused(size_t run, BitWriter* writer) {
  while (run >= 17) {
    const size_t part = std::min<size_t>(run, 272);
    writer->Write(kLongRun, 4);
    writer->Write(part - 17, 8);
    run -= part;
  }
  if (run > 0) {
    writer->Write(kShortRun, 4);
    writer->Write(run - 1, 4);
  }
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
  std::vector<uint64_t> weights(counts.begin(), counts.end());
  while (true) {
    std::sort(used.begin(), used.end(), [&](size_t a, size_t b) {
      return weights[a] != weights[b] ? weights[a] < weights[b] : a < b;
    });
    std::vector<uint64_t> sorted_counts;
    for (size_t symbol : used) sorted_counts.push_back(weights[symbol]);
    const std::vector<int> depths = Depths(sorted_counts);
    if (*std::max_element(depths.begin(), depths.end()) <= kMaxCodeLength) {
      for (size_t i = 0; i < used.size(); ++i)
        lengths[used[i]] = static_cast<CodeLength>(depths[i]);
      return lengths;
    }
    for (size_t symbol : used) weights[symbol] = weights[symbol] / 2 | 1;
  }
}

void WriteCodeLengths(absl::Span<const CodeLength> lengths, BitWriter* writer) {
  for (size_t symbol = 0; symbol < lengths.size();) {
    size_t end = symbol;
    while (end < lengths.size() && lengths[end] == 0) ++end;
    if (end == lengths.size()) return writer->Write(kRest, 4);
    WriteUnused(end - symbol, writer);
    writer->Write(lengths[end], 4);
    symbol = end + 1;
  }
}

absl::Status ReadCodeLengths(BitReader* reader, absl::string_view what,
                             absl::Span<CodeLength> lengths) {
  for (size_t symbol = 0; symbol < lengths.size();) {
    const uint64_t token = reader->Read(4);
    size_t run = 1;
    if (token == kShortRun) run = reader->Read(4) + 1;
    if (token == kLongRun) run = reader->Read(8) + 17;
    if (token == kRest) run = lengths.size() - symbol;
    if (token > kRest || run > lengths.size() - symbol) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": token ", token, " with a run of ",
                                                     run, " after ", symbol, " of ", lengths.size(),
                                                     " symbols"));
    }
    std::fill_n(lengths.begin() + symbol, run,
                token <= kOnlySymbol ? static_cast<CodeLength>(token) : 0);
    symbol += run;
  }
  if (reader->past_end())
    return absl::InvalidArgumentError(absl::StrCat(what, ": the code lengths are cut off"));
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
