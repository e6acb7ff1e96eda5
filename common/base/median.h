// Medians, which a single outlier moves little. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace distro {

// The median; of an even number of values, the mean of the middle two. Requires at least one value,
// and no NaN.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

// The value of index floor((n - 1) / 2) in ascending order. Requires at least one value, and no
// NaN.
template <typename Value>
Value LowerMedian(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace distro
