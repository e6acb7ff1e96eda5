// The middle of some values: one of them that is far off moves it little. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace distro {

// Of an even number of values the mean of the two in the middle. Requires one or more, none of them
// NaN.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

// Number floor((n - 1) / 2) of n values in ascending order, from 0. Requires one or more, none of
// them NaN.
template <typename Value>
Value LowerMedian(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace distro
