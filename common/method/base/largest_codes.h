// The largest scale codes that a worker sent, from which methods with caps take the next ones.
// Plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace distro {

// For each tensor [tensors], the largest code in a non-empty record; nullopt if there is none.
using LargestCodes = std::vector<std::optional<uint8_t>>;

// Adds the codes of other blocks.
inline void AddLargestCodes(const LargestCodes& of, LargestCodes* largest) {
  largest->resize(std::max(largest->size(), of.size()));
  for (size_t i = 0; i < of.size(); ++i) {
    if (of[i].has_value()) (*largest)[i] = std::max((*largest)[i].value_or(0), *of[i]);
  }
}

}  // namespace distro
