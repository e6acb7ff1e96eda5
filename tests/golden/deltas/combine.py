"""Single blocks, the records that came for them, and what the aggregator makes of these."""
import reference as ref
from arrays import Rows
from layout import POSITIONS, matrix_blocks
from rounds import Random

WHOLE = (64, 64, 4096)  # a tensor of one block: rows, columns, elements
DIVISORS = ("senders", "all")
DTYPES = {
    "rows": "u8", "cols": "u8", "elements": "u16", "divisor": "u8", "floor_256": "u16",
    "keep": "u16", "seed": "u64", "round": "u32", "block": "u32", "included_weight": "u32",
    "record_offset": "u32", "record_weight": "u32", "record_code": "u8",
    "entry_offset": "u32", "entry_index": "u16", "entry_sign": "i8",
    "sum_offset": "u32", "sum_index": "u16", "sum_value": "i64", "sum_count": "u32", "mean": "i64",
    "result_code": "i16", "result_offset": "u32", "result_index": "u16", "result_sign": "i8",
    "result_level": "u8"}


def record(code, *entries):
    """entries: (position, sign), positions ascending."""
    return ref.Record([i for i, _ in entries], [sign for _, sign in entries], code)


class Cases:
    def __init__(self):
        self.random = Random(64)
        self.rows = Rows("record", "entry", "sum", "result")

    def add(self, shape, records, empty_weight=0, divisor="senders", floor_256=0, keep=0):
        """records: (weight, Record). empty_weight: of empty records. keep: K', 0 when lossless."""
        [inside] = matrix_blocks(*shape)
        run_seed = ref.mix(self.random.below(2 ** 24))
        number, block = self.random.below(2 ** 20), self.random.below(2 ** 22)
        weight = empty_weight + sum(n for n, _ in records)
        means = ref.combine(inside, records, weight, divisor, floor_256)
        result = ref.make_result(means, keep or None, run_seed, number, block)
        self.rows.add(rows=shape[0], cols=shape[1], elements=shape[2], keep=keep, seed=run_seed,
                      divisor=DIVISORS.index(divisor), floor_256=floor_256, round=number,
                      block=block, included_weight=weight,
                      result_code=-1 if result.code is None else result.code)
        for n, sent in records:
            self.rows.add(record_weight=n, record_code=sent.code)
            self.rows.extend(entry_index=sent.positions, entry_sign=sent.signs)
            self.rows.end("entry", len(sent.positions))
        self.add_outcome(means, result)
        self.rows.end("record", len(records))
        return result

    def add_outcome(self, means, result):
        positions, kept = sorted(means), sorted(result.entries)
        self.rows.extend(sum_index=positions, sum_value=[means[i].total for i in positions],
                         sum_count=[means[i].count for i in positions],
                         mean=[means[i].r for i in positions], result_index=kept,
                         result_sign=[result.entries[i][0] for i in kept],
                         result_level=[result.entries[i][1] for i in kept])
        self.rows.end("sum", len(positions))
        self.rows.end("result", len(kept))


def drawn(cases):
    random = cases.random
    rows = 64 - random.below(64) * random.below(2)
    cols = 64 - random.below(64) * random.below(2)
    k, workers = (1, 4, 8, 16)[random.below(4)], 1 + random.below(12)
    hot = [random.below(POSITIONS) for _ in range(12)]
    low = random.below(248)
    records = []
    for _ in range(workers):
        chosen = set()
        while len(chosen) < k:
            common = random.below(3) == 0
            chosen.add(hot[random.below(12)] if common else random.below(POSITIONS))
        entries = [(i, random.below(2) * 2 - 1) for i in sorted(chosen)]
        records.append((1 + random.below(15), record(low + random.below(8), *entries)))
    cases.add((rows, cols, rows * cols), records, 15 * random.below(3), DIVISORS[random.below(2)],
              64 * random.below(5), (0, 4, 8)[random.below(3)])


def bounds(cases):
    """The largest S, which int64 must hold, and |S| below half of D."""
    for code in (0, 255):
        cases.add(WHOLE, [(2 ** 19, record(code, (3, -1), (9, 1)))])
    cases.add(WHOLE, [(2 ** 18, record(255, (5, 1))), (2 ** 18, record(254, (5, -1), (6, 1)))],
              divisor="all")
    for empty_weight in (510, 600):  # S is 256: r is 1, or 0
        cases.add(WHOLE, [(1, record(1, (7, 1))), (1, record(0, (7, -1)))], empty_weight, "all")


def levels(cases):
    """Lone senders of many levels beside a strong one, and blocks without level 0."""
    for divisor, floor in (("senders", 0), ("senders", 128), ("all", 0)):
        lone = [(n, record(100 - 3 * n, (n, -1), (40 + n, 1))) for n in range(1, 15)]
        cases.add(WHOLE, [(15, record(100, (0, 1)))] + lone, divisor=divisor, floor_256=floor)
    small = [(1, record(0, (1, 1), (2, -1)))]
    border = cases.add(WHOLE, small, 12, "all")  # code 0, and no level 0
    assert border.code == 0 and all(level > 0 for _, level in border.entries.values())
    assert not cases.add(WHOLE, small, 27, "all").entries  # all below the last level: empty


def borders(cases):
    """Positions exactly at the border of each level, and just below: sent by parts of N = 2^16."""
    for below in (0, 1):
        shares = [2 ** 16] + [b - below for b in ref.B]  # position j gets shares[j] of 2^16
        weights = [more - less for more, less in zip(shares, shares[1:] + [0])]
        cases.add(WHOLE, [(n, record(100, *((j, 1) for j in range(last + 1))))
                          for last, n in enumerate(weights)], divisor="all")


def outside(cases):
    """A vector of 70: what lies outside counts nowhere, whatever its sign."""
    cases.add((2, 64, 70), [(1, record(50, (69, -1), (70, -1), (4095, -1))),
                            (2, record(50, (5, 1), (70, 1), (71, -1)))], divisor="all", keep=2)


def empty(cases):
    assert not cases.add(WHOLE, [(1, record(9, (0, 1))), (1, record(9, (0, -1)))]).entries
    assert not cases.add(WHOLE, [], floor_256=64).entries


def equals(cases):
    """64 positions of two magnitudes, of which nine are kept."""
    eighths = [[(j, 1) for j in range(i, 64, 8)] for i in range(8)]
    cases.add(WHOLE, [(1, record(90 + i % 2, *eighth)) for i, eighth in enumerate(eighths)], keep=9)


def arrays():
    cases = Cases()
    for _ in range(40):
        drawn(cases)
    for special in (bounds, levels, borders, outside, empty, equals):
        special(cases)
    return cases.rows.arrays(**DTYPES)
