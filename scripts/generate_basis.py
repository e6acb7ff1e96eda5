#!/usr/bin/env python3
"""Prints kernels/basis_constants.h: the 65 magnitudes in the DCT-II basis of length 64.

    python3 scripts/generate_basis.py > kernels/basis_constants.h

Decimal arithmetic with 60 digits, so that no libm decides a bit. Needs nothing but Python 3.
"""
from decimal import Decimal, getcontext, ROUND_HALF_EVEN

getcontext().prec = 60


def pi():
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""
    def atan_inverse(x):
        term, total, n = Decimal(1) / x, Decimal(0), 0
        while abs(term) > Decimal(10) ** -58:
            total += (-1) ** n * term / (2 * n + 1)
            term /= x * x
            n += 1
        return total
    return 16 * atan_inverse(5) - 4 * atan_inverse(239)


def cosine(x):
    term, total, n = Decimal(1), Decimal(0), 0
    while abs(term) > Decimal(10) ** -58:
        total += term
        n += 2
        term *= -x * x / (n * (n - 1))
    return total


def rows(values, per_line):
    lines = [values[i:i + per_line] for i in range(0, len(values), per_line)]
    return ",\n".join("    " + ", ".join(line) for line in lines)


def main():
    # Entry j is sqrt(2/64) * cos(pi*j/128); every basis entry of a frequency above 0 is one of them with a sign.
    scale = (Decimal(2) / 64).sqrt()
    wave = [scale * cosine(pi() * j / 128) if j < 64 else Decimal(0) for j in range(65)]
    doubles = [float(value).hex() for value in wave]
    integers = [str(int((value * 8192).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))) for value in wave]
    print(f"""// Made by scripts/generate_basis.py. Do not edit.
// Entry j: sqrt(2/64) * cos(pi*j/128), j = 0..64, correctly rounded to f64, and times 2^13 rounded to an integer.
#pragma once

#include <cstdint>

namespace distro {{

inline constexpr double kQuarterWave[65] = {{
{rows(doubles, 4)}}};

inline constexpr int16_t kQuarterWaveQ13[65] = {{
{rows(integers, 16)}}};

}}  // namespace distro""")


if __name__ == "__main__":
    main()
