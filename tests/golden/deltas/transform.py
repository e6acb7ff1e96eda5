"""The DCT of a block of 64 x 64, and IDCTint, as docs/algorithm.md has them under "Exactness".

A block is a dict {position: value} with 0 elsewhere; what comes of it is a list of all positions.
"""
import math
import operator

from layout import SIDE


def table(bits):
    """round(2^bits * D), [frequency][sample]; D is the orthonormal DCT-II.

    No entry may be so near a half that another math library would round it the other way. The angle
    is brought below 2 pi first: a large one would be less exact than the cosine.
    """
    rows = []
    for k in range(SIDE):
        scale = 2 ** bits * math.sqrt((1 if k == 0 else 2) / SIDE)
        angles = ((2 * n + 1) * k % (4 * SIDE) for n in range(SIDE))
        exact = [scale * math.cos(math.pi * angle / (2 * SIDE)) for angle in angles]
        assert all(abs(value % 1 - 0.5) > 1e-4 for value in exact)
        rows.append([round(value) for value in exact])
    return rows


def transposed(matrix):
    return list(zip(*matrix))


Q = table(13)
# Multiples of 2^-36 and sums that are rounded once, so that the transforms of doubles, which need
# not be the same everywhere, give the same bits at least here.
D = [[value / 2 ** 36 for value in row] for row in table(36)]
Q_BACK, D_BACK = transposed(Q), transposed(D)


def product(matrix, block, add, between):
    """matrix * block * transposed matrix; `between` is done to the sums after the first product."""
    rows = {}
    for position, value in block.items():
        rows.setdefault(position // SIDE, [0] * SIDE)[position % SIDE] = value
    half = [[between(add(map(operator.mul, row, line))) for line in matrix]
            for row in rows.values()]  # rows of zeros stay so, and are left out
    columns = transposed(half)
    lines = ([line[r] for r in rows] for line in matrix)
    return [add(map(operator.mul, line, column)) for line in lines for column in columns]


def forward(block):
    """Frequencies of elements."""
    return product(D, block, math.fsum, float)


def inverse(block):
    """Elements of frequencies."""
    return product(D_BACK, block, math.fsum, float)


def inverse_int(block):
    """u: 2^20 times the elements of frequencies, exact."""
    return product(Q_BACK, block, sum, lambda t: (t + 32) >> 6)
