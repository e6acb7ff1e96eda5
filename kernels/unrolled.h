// Loops whose index is a constant, for the code that GPUs and CPUs share.
#pragma once

#include <utility>

namespace distro {

// Calls f(0), f(1), ... f(kCount - 1) with constants. Arrays indexed by them stay in registers even
// if the compiler would not unroll a loop.
template <typename F, int... kIndices>
constexpr void UnrolledOver(const F& f, std::integer_sequence<int, kIndices...>) {
  (f(std::integral_constant<int, kIndices>()), ...);
}
template <int kCount, typename F>
constexpr void Unrolled(const F& f) {
  UnrolledOver(f, std::make_integer_sequence<int, kCount>());
}

}  // namespace distro
