"""The method "Deltas" of docs/algorithm.md in exact arithmetic, written from that page alone: a
second implementation, which makes the golden data of this folder. Slow, and meant to be read.

Integers are Python's, without a bound. A Python float is a double, so an f32 operation is done in
double and rounded to f32: a product of two f32 is exact in a double, and a sum of two f32 that is
rounded to 53 bits first rounds to the same f32 (53 >= 2 * 24 + 2). What is local to a worker and
need not be the same everywhere is done in double and rounded to f32 at its end. Needs nothing but
Python 3.

A block's values are a dict {position: value}, ascending, of the positions inside its tensor.
"""
import dataclasses
import math
import struct

import transform
from layout import POSITIONS

UNIT = 2 ** 44  # 1.0 in units of 2^-44
CODES = 256
DROPPED = 8  # levels are 0..7
T = (65536, 46341, 32768, 23170, 16384, 11585, 8192, 5793)
B = (55109, 38968, 27554, 19484, 13777, 9742, 6889, 4871)
G = 0x9E3779B97F4A7C15
MASK = 2 ** 64 - 1


def f32(value):
    """The nearest f32, ties to even; infinite beyond the largest."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def mix(z):
    """The finaliser of SplitMix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def state_hash(values):
    """Of one tensor, as docs/algorithm.md has it under "Exactness"."""
    return sum(mix((2 ** 32 * i + bits(value) + G) & MASK) for i, value in enumerate(values)) & MASK


# Scale codes -------------------------------------------------------------------------------------


def magnitude(code):
    """M(c), in units of 2^-44."""
    return (8 + code % 8) << (code // 8 + 8)


def units(value):
    """|value| in units of 2^-44, ties to even, at most 1.0."""
    return min(round(abs(value) * 2.0 ** 44), UNIT)


def nearest_code(total, count):
    """Of a mean of total / count units."""
    for code in range(CODES - 1):
        if 2 * total <= count * (magnitude(code) + magnitude(code + 1)):
            return code
    return CODES - 1


def scale_code(values):
    """None: the record is empty."""
    total = sum(units(value) for value in values)
    return None if 2 * total < len(values) * magnitude(0) else nearest_code(total, len(values))


# A worker ----------------------------------------------------------------------------------------


def form(beta, e, p_begin, x):
    """a, or None when it is not finite. Three f32 operations an element."""
    a = []
    for old, p, own in zip(e, p_begin, x):
        if not math.isfinite(own):
            return None
        a.append(f32(f32(beta * old) + f32(p - own)))
    return a if all(map(math.isfinite, a)) else None


def block_values(a, block):
    """b: what a record of the block is made of."""
    elements = {position: a[i] for position, i in block.elements.items()}
    if not block.as_dct:
        return elements
    return dict(enumerate(map(f32, transform.forward(elements))))


@dataclasses.dataclass
class Record:
    positions: list  # K, ascending
    signs: list  # K, +1 or -1
    code: int


def make_record(values, k, cap):
    """None: empty."""
    chosen = sorted(values, key=lambda i: (-abs(values[i]), i))[:k]
    code = scale_code([values[i] for i in chosen])
    if code is None:
        return None
    outside = (i for i in range(POSITIONS) if i not in values)
    positions = sorted(chosen + [next(outside) for _ in range(k - len(chosen))])
    signs = [-1 if values.get(i, 0.0) < 0 else 1 for i in positions]
    return Record(positions, signs, min(code, cap))


def weight(steps, inner_steps, window):
    """n_w."""
    return max(1, (30 * steps + inner_steps) // (2 * inner_steps)) if window else 1


def feed_back(e, block, record, result):
    """Takes out of e what the worker sent of a block of an included segment and came back."""
    q = {position: sign * (magnitude(record.code) / 2.0 ** 44)
         for position, sign in zip(record.positions, record.signs)
         if position in block.inside and position in result.entries}
    if block.as_dct and q:
        taken = transform.inverse(q)
        q = {position: taken[position] for position in block.elements}
    for position, value in q.items():
        i = block.elements[position]
        e[i] = f32(e[i] - value)


# The aggregator ----------------------------------------------------------------------------------


@dataclasses.dataclass
class Mean:
    total: int = 0  # S
    count: int = 0  # C
    r: int = 0


@dataclasses.dataclass
class Result:
    code: int = None  # cmax; None: the block is empty
    entries: dict = dataclasses.field(default_factory=dict)  # position -> (sign, level)


def sign_of(number):
    return (number > 0) - (number < 0)


def combine(inside, records, included_weight, divisor, rho_256):
    """{position: Mean}, of [(n_w, Record)] of the included whose record is not empty.

    included_weight: N. inside: the positions of the tensor.
    """
    means = {}
    for n, record in records:
        for position, sign in zip(record.positions, record.signs):
            if position in inside:
                mean = means.setdefault(position, Mean())
                mean.total += n * sign * magnitude(record.code)
                mean.count += n
    floor = -(-included_weight * rho_256 // 256)  # C_min
    for mean in means.values():
        d = included_weight if divisor == "all" else max(mean.count, floor)
        mean.r = sign_of(mean.total) * ((2 * abs(mean.total) + d) // (2 * d))
    return means


def make_result(means, keep, seed, round_number, block):
    """keep: K', None when the download is lossless. block: counted over the whole run."""
    def tie(position):
        return mix((seed + G * (round_number * 2 ** 38 + block * 2 ** 12 + position + 1)) & MASK)

    r = {position: mean.r for position, mean in means.items() if mean.r != 0}
    kept = sorted(sorted(r, key=lambda i: (-abs(r[i]), tie(i)))[:keep])
    if not kept:
        return Result()
    largest = max(abs(r[i]) for i in kept)
    code = next(c for c in range(CODES) if magnitude(c) >= largest)
    entries = {}
    for i in kept:
        level = sum(abs(r[i]) * 2 ** 16 < magnitude(code) * b for b in B)
        if level != DROPPED:
            entries[i] = (sign_of(r[i]), level)
    return Result(code, entries) if entries else Result()


def agreement(inside, record, other):
    """(agree, disagree): positions that both sent with one sign, or with opposite ones."""
    signs = dict(zip(other.positions, other.signs))
    products = [sign * signs[position] for position, sign in zip(record.positions, record.signs)
                if position in inside and position in signs]
    return products.count(1), products.count(-1)


def median_code(codes, before):
    """m_t, of one code a worker; before: of the round before, None if there is none."""
    if before is not None:
        codes = codes + [before] * (3 - len(codes))
    return sorted(codes)[(len(codes) - 1) // 2] if len(codes) >= 3 else None


def cap(rates, median):
    """Of a round with these inner rates; median: of the round before, None in round 0."""
    total = sum(units(rate) for rate in rates)
    highest, floor = nearest_code(min(16 * total, UNIT), 1), nearest_code(min(total, UNIT), 1)
    return highest if median is None else min(highest, max(floor, median + 2))


# Every replica -----------------------------------------------------------------------------------


def level_value(code, level):
    """|R|, in units of 2^-44."""
    return (magnitude(code) * T[level] + 2 ** 15) >> 16


def rate_of_units(alpha):
    """a32."""
    return f32(alpha * 2.0 ** -44)


def step(alpha, code, level):
    return f32(level_value(code, level) * rate_of_units(alpha))


def move(p, alpha, code, sign, level):
    return f32(p - sign * step(alpha, code, level))


def shifted(level, h):
    """|V| of an entry."""
    return (T[level] + 2 ** (h - 1)) >> h


def shift(result):
    """h."""
    levels = [level for _, level in result.entries.values()]
    return next(h for h in range(1, 15) if sum(shifted(level, h) for level in levels) <= 32767)


def direction(result):
    """u, of all positions of the block."""
    h = shift(result)
    return transform.inverse_int({position: sign * shifted(level, h)
                                  for position, (sign, level) in result.entries.items()})


def direction_scale(result, alpha):
    """w."""
    whole = f32(magnitude(result.code) * rate_of_units(alpha))
    return f32(whole * 2.0 ** (shift(result) - 36))


def block_steps(result, alpha):
    """float(u) * w, of all positions of a block that travels as its DCT."""
    w = direction_scale(result, alpha)
    return [f32(f32(u) * w) for u in direction(result)]


def apply_result(p, block, result, alpha):
    if block.as_dct and result.entries:
        steps = block_steps(result, alpha)
        for position, i in block.elements.items():
            p[i] = f32(p[i] - steps[position])
    elif not block.as_dct:
        for position, (sign, level) in result.entries.items():
            i = block.elements[position]
            p[i] = move(p[i], alpha, result.code, sign, level)
