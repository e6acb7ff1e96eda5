"""Single blocks that travel as their DCT, and the step that every replica takes with them."""
import reference as ref
from arrays import Rows
from coverage import fused
from layout import POSITIONS, Block, matrix_blocks
from rounds import Random

TINY = 2.0 ** -149  # the smallest f32
SPECIAL = (0.0, -0.0, TINY, -TINY, 1e-40, -1e-39, 2.0 ** -126, 3e38, -3e38, 1.0, -1.0)
WHOLE = (64, 64, 4096)  # a tensor of one block: rows, columns, elements
SMALL = (12, 20, 240)
DTYPES = {"rows": "u8", "cols": "u8", "elements": "u16", "alpha": "f32", "code": "u8",
          "shift": "u8", "entry_offset": "u32", "entry_index": "u16", "entry_sign": "i8",
          "entry_level": "u8", "element_offset": "u32", "p": "f32", "result": "f32"}


class Cases:
    def __init__(self):
        self.random = Random(20)
        self.rows = Rows("entry", "element")

    def levels(self, *counts):
        """counts: how many entries have level 0, 1, ..; at drawn positions, with drawn signs."""
        levels = [level for level, count in enumerate(counts) for _ in range(count)]
        order = sorted(range(POSITIONS), key=lambda _: self.random.unit())
        return {i: (self.random.below(2) * 2 - 1, level)
                for i, level in sorted(zip(order, levels))}

    def add(self, shape, alpha, code, entries):
        """entries: {position: (sign, level)}, ascending. Returns what the case was made of."""
        result, alpha = ref.Result(code, entries), ref.f32(alpha)
        [elements] = matrix_blocks(*shape)
        steps = ref.block_steps(result, alpha)
        before = [self.parameter(i, steps[position]) for position, i in elements.items()]
        after = list(before)
        ref.apply_result(after, Block(0, elements, True), result, alpha)
        self.rows.add(rows=shape[0], cols=shape[1], elements=shape[2], alpha=alpha, code=code,
                      shift=ref.shift(result))
        self.rows.extend(entry_index=entries, p=before, result=after,
                         entry_sign=[sign for sign, _ in entries.values()],
                         entry_level=[level for _, level in entries.values()])
        self.rows.end("entry", len(entries))
        self.rows.end("element", len(before))
        return result, [steps[position] for position in elements], before, after

    def parameter(self, i, step):
        """The step itself every now and then, so that the difference is +0."""
        if i % 16 == 5:
            return step
        if i % 16 in (0, 7, 11):
            return SPECIAL[self.random.below(len(SPECIAL))]
        return ref.f32(2.0 ** -self.random.below(16) * self.random.noise())


def alone(cases):
    """One entry: the mean, and two others. h is 2, since 2^15 is one too many; else 1."""
    flat, steps, before, after = cases.add(SMALL, 1, 200, {0: (1, 0)})
    assert ref.shift(flat) == 2 and set(steps) == {steps[0]}
    assert any(p == step and ref.bits(new) == 0 for p, step, new in zip(before, steps, after))
    cases.add(WHOLE, 3, 255, {37 * 64 + 12: (-1, 0)})
    without, *_ = cases.add(SMALL, 0.65, 0, {POSITIONS - 1: (1, 1)})
    assert ref.shift(without) == 1


def many(cases):
    cases.add(SMALL, 0.65, 100, cases.levels(1, 1, 1, 1, 1, 1, 1, 1))
    result, steps, before, after = cases.add(WHOLE, 0.65, 180, cases.levels(*[32] * 8))
    w, directions = ref.direction_scale(result, ref.f32(0.65)), ref.direction(result)
    moved = list(zip(directions, before, after))
    assert any(fused(-ref.f32(u), w, p) != new for u, p, new in moved)
    assert any(ref.f32(p - ref.f32(u * w)) != new for u, p, new in moved)
    assert any(ref.bits(p) == 2 ** 31 and new not in (0, p) for p, new in zip(before, after))
    assert any(abs(p) > 1e38 for p in before) and any(0 < abs(p) < 2.0 ** -126 for p in before)
    full, *_ = cases.add(WHOLE, 1, 150, cases.levels(4096))
    assert ref.shift(full) == 14
    mixed, *_ = cases.add(WHOLE, 3, 60, cases.levels(2500, 500, 400, 300, 200, 100, 50, 46))
    assert ref.shift(mixed) == 13


def borders(cases):
    """The sum of |V| is 32767, the largest, and 32768, so that h goes on."""
    for counts, total, h in (((7, 12, 0, 0, 1, 1, 0, 1), 32767, 5), ((16,), 32768, 6)):
        result, *_ = cases.add(SMALL, 1, 220, cases.levels(*counts))
        levels = [level for _, level in result.entries.values()]
        assert sum(ref.shifted(level, 5) for level in levels) == total and ref.shift(result) == h


def edges(cases):
    """Blocks of which the tensor has a part; frequencies are entries wherever they lie."""
    for shape in ((1, 6, 6), (64, 3, 192), (5, 64, 261), (1, 1, 1)):
        result, *_ = cases.add(shape, 0.65, 190, cases.levels(2, 3, 3))
        [elements] = matrix_blocks(*shape)
        assert not elements.keys() >= result.entries.keys()


def small(cases):
    """The least alpha: w is a denormal, one that is rounded, and 0, which an alpha of 0 gives too.
    A step of 0 has the sign of u, and takes that of a -0 away."""
    tiny = 2.0 ** -82
    smallest = ref.Result(0, {0: (1, 0)})
    assert ref.direction_scale(smallest, tiny) == TINY
    cases.add(SMALL, tiny, 0, smallest.entries)
    alpha, code = ref.f32(1.7 * tiny), 3
    rounded, *_ = cases.add(SMALL, alpha, code, cases.levels(1, 1))
    exact = ref.f32(ref.magnitude(code) * alpha * 2.0 ** -44) * 2.0 ** (ref.shift(rounded) - 36)
    assert 0 < ref.direction_scale(rounded, alpha) < 2.0 ** -126
    assert ref.direction_scale(rounded, alpha) != exact
    for alpha in (tiny, 0.0):
        result, steps, before, after = cases.add(SMALL, alpha, 0, {130: (1, 3)})
        assert ref.direction_scale(result, alpha) == 0
        signs = {(ref.bits(step), ref.bits(new)) for step, p, new in zip(steps, before, after)
                 if ref.bits(p) == 2 ** 31}
        assert signs == {(0, 2 ** 31), (2 ** 31, 0)}


def arrays():
    cases = Cases()
    for special in (alone, many, borders, edges, small):
        special(cases)
    return cases.rows.arrays(**DTYPES)
