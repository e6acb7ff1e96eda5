// The results of Compress, and their comparison to the bit: for tests of one backend against
// another.
#pragma once

#include <utility>
#include <vector>

#include "tests/kernels/backends.h"

namespace distro::testing {

inline constexpr SignCompressOptions kOptions = {
    .beta = 0.999f, .eta = 0.25f, .gradient_scale = 0.5f, .k = 6};

struct Compressed {
  explicit Compressed(const ShapeCase& shape, std::vector<float> start)
      : momentum(std::move(start)),
        positions(shape.blocks.count * kOptions.k),
        values(shape.blocks.count * kOptions.k) {}
  std::vector<float> momentum;
  std::vector<uint16_t> positions;
  std::vector<float> values;
};

inline void ExpectSame(const Compressed& got, const Compressed& want) {
  EXPECT_EQ(Bits(got.momentum), Bits(want.momentum));
  EXPECT_EQ(got.positions, want.positions);
  EXPECT_EQ(Bits(got.values), Bits(want.values));
}

inline void RunCompress(WaitingBackend& backend, const ShapeCase& shape,
                        const std::vector<float>& gradient, Compressed& c) {
  backend.CompressSigns(shape.matrix, shape.blocks, kOptions, gradient, absl::MakeSpan(c.momentum),
                        absl::MakeSpan(c.positions), absl::MakeSpan(c.values));
}

}  // namespace distro::testing
