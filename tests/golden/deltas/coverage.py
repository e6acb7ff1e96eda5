"""Counts what the golden runs meet, so that none of the cases they are for is missing: generate.py
fails when one is. A count of "bits" is of results that a wrong operation would have changed."""
import fractions
import math

import reference as ref
import rounds
from layout import POSITIONS, SIDE

NEEDED = {
    "k1": """a not finite | beyond 1.0 | floor binds | K' cut | K' tie | code 0..31 | code 255
        | cap F | cap median + 2 | bits: fused beta * e | bits: fused update""",
    "k8": """away | too late | no step | x not finite | edge with fewer than K | K tie | -0 chosen
        | empty record | code 0 | excluded | nobody included | cancelled | cap A | cap F
        | cap median + 2 | 2 workers or fewer: cap A | m before and 0 codes | m before and 2 codes
        | m before and 2 codes: another m | segment cuts tensor | -0 in p stays | feedback kept back | bits: fused beta * e | bits: fused update""",
    "k32": """whole block | edge with fewer than K | beyond 1.0 | code 255 | K' cut | K' tie
        | below the last level | cancelled by weight | excluded | bits: fused beta * e
        | bits: fused update""",
    "dct": """away | excluded | segment cuts tensor | edge with fewer than K
        | whole block of frequencies | fewer rows of frequencies | fewer columns of frequencies
        | one row of frequencies | beside the elements of frequencies
        | empty record of frequencies | cap A of frequencies | cap F of frequencies
        | cap median + 2 of frequencies | cancelled of frequencies
        | below the last level of frequencies | feedback kept back of frequencies
        | level 0 of frequencies | level 7 of frequencies
        | no entry, -0 stays of frequencies | entries, -0 moves of frequencies
        | bits: fused beta * e | bits: fused update | bits: fused update of frequencies
        | bits: u not rounded of frequencies""",
}
MARGIN = 1e-4  # how far from every tie records of frequencies have to be; transforms differ by less
# Of twice a mean of units: below the first a record is empty; the others are between two codes.
BORDERS = [ref.magnitude(0)] + [ref.magnitude(c) + ref.magnitude(c + 1)
                                for c in range(ref.CODES - 1)]


def fused(a, b, c):
    """f32 of a * b + c rounded once; by way of a double, which is near enough for a count."""
    return ref.f32(float(fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)))


def near_tie(values, k):
    """Whether the last bits of the transform could change the record of a block of frequencies."""
    sizes = sorted(map(abs, values.values()), reverse=True)
    total = 2 * sum(ref.units(size) for size in sizes[:k])
    if any(abs(total - k * border) <= MARGIN * total for border in BORDERS):
        return True
    empty = total < k * BORDERS[0]
    return not empty and min(sizes[k - 1], sizes[k - 1] - sizes[k]) <= MARGIN * sizes[0]


class Watched(rounds.Rounds):
    """Plays the scenario again and counts."""

    def __init__(self, scenario):
        self.counts = {}
        cuts = zip(scenario.layout.blocks, scenario.layout.blocks[1:], scenario.layout.segment_of,
                   scenario.layout.segment_of[1:])
        for block, after, segment, next_segment in cuts:
            same = block.tensor == after.tensor
            self.see("segment cuts tensor", same and segment != next_segment)
        super().__init__(scenario)

    def see(self, name, times=1):
        self.counts[name] = self.counts.get(name, 0) + int(times)

    def see_of(self, block, name, times=1):
        self.see(name + " of frequencies" if block.as_dct else name, times)

    def round(self, t):
        self.t, self.p_before = t, list(self.p)
        super().round(t)

    def window(self, t, w, steps, caps):
        attendance, before = self.s.attendance(t, w), self.e[w]
        self.see("away", attendance == rounds.AWAY)
        self.see("too late", attendance == rounds.TOO_LATE)
        self.see("no step", steps == 0 and attendance != rounds.AWAY)
        records = super().window(t, w, steps, caps)
        x = self.rows["x"][-self.layout.elements:]
        finite = all(map(math.isfinite, x))
        self.see("x not finite", not finite)
        abstains = records is None and steps and attendance == rounds.IN_TIME
        self.see("a not finite", abstains and finite)
        if records:
            beta = self.s.beta[t]
            self.see("bits: fused beta * e", sum(
                fused(beta, e, ref.f32(p - own)) != a
                for e, p, own, a in zip(before, self.p, x, self.e[w])))
        return records

    def record(self, block, values, cap):
        record = super().record(block, values, cap)
        order = sorted(values, key=lambda i: (-abs(values[i]), i))
        chosen, k = order[:self.run["k"]], self.run["k"]
        self.see("edge with fewer than K", len(values) < k)
        self.see_of(block, "whole block", len(block.elements) == POSITIONS)
        self.see("K tie", len(order) > k and abs(values[order[k - 1]]) == abs(values[order[k]]) > 0)
        self.see("beyond 1.0", any(abs(values[i]) > 1 for i in chosen))
        self.see_of(block, "empty record", record is None)
        if block.as_dct:
            self.frequencies(block, values, record)
        if record:
            self.see("-0 chosen", any(ref.bits(values[i]) == 2 ** 31 for i in chosen))
            self.see("code 0", record.code == 0)
            self.see("code 0..31", record.code < 32)
            self.see("code 255", record.code == 255)
            if ref.scale_code([values[i] for i in chosen]) > record.code:
                self.clamped(block, cap)
        return record

    def frequencies(self, block, values, record):
        if near_tie(values, self.run["k"]):
            raise SystemExit(f"round {self.t}: a record of frequencies is too near a tie")
        rows = len({position // SIDE for position in block.elements})
        self.see_of(block, "one row", rows == 1)
        self.see_of(block, "fewer rows", rows < SIDE)
        self.see_of(block, "fewer columns", len(block.elements) < rows * SIDE)
        beside = record is not None and not block.elements.keys() >= set(record.positions)
        self.see_of(block, "beside the elements", beside)

    def clamped(self, block, cap):
        median = self.medians[block.tensor]
        if median is None:
            self.see_of(block, "2 workers or fewer: cap A" if self.t else "cap A")
        elif cap == median + 2:
            self.see_of(block, "cap median + 2", cap > ref.cap(self.s.rates[self.t], 0))
        else:
            self.see_of(block, "cap F", cap == ref.cap(self.s.rates[self.t], 0))

    def combine(self, t, weights, uploads, included):
        self.block, self.weights, self.included = 0, weights, included
        sent = sum(upload is not None for upload in uploads)
        for row in included:
            self.see("nobody included", not any(row))
            self.see("excluded", sent - sum(row))
        return super().combine(t, weights, uploads, included)

    def add_means(self, means):
        super().add_means(means)
        for mean in means.values():
            self.see_of(self.layout.blocks[self.block], "cancelled", mean.r == 0)
            self.see("cancelled by weight", mean.r == 0 and len(set(self.weights)) > 1)
        self.means = means

    def add_result(self, result):
        super().add_result(result)
        live = sorted((abs(mean.r) for mean in self.means.values() if mean.r), reverse=True)
        kept = self.run["kept"]
        if kept and len(live) > kept:
            self.see("K' cut")
            self.see("K' tie", live[kept - 1] == live[kept])
        block = self.layout.blocks[self.block]
        self.see_of(block, "below the last level", len(live[:kept]) - len(result.entries))
        row = self.included[self.layout.segment_of[self.block]]
        self.block += 1
        weight = sum(n for n, bit in zip(self.weights, row) if bit)
        floor = -(-weight * self.run["floor_256"] // 256)
        self.see("floor binds", any(mean.count < floor for mean in self.means.values()))

    def finish(self, uploads, included, results):
        self.see("-0 in p stays", sum(ref.bits(p) == 2 ** 31 for p in self.p))
        for block, result in zip(self.layout.blocks, results):
            (self.moved_as_dct if block.as_dct else self.moved)(block, result)
        for b, block in enumerate(self.layout.blocks):
            for w, upload in enumerate(uploads):
                if upload and upload[b] and included[self.layout.segment_of[b]][w]:
                    self.see_of(block, "feedback kept back", any(
                        position in block.inside and position not in results[b].entries
                        for position in upload[b].positions))
        super().finish(uploads, included, results)

    def median(self, codes, before):
        median = super().median(codes, before)
        if before is not None and len(codes) < 3:
            self.see(f"m before and {len(codes)} codes")
            self.see("m before and 2 codes: another m", median != before)
        return median

    def moved(self, block, result):
        for position, (sign, level) in result.entries.items():
            i = block.elements[position]
            value = -sign * ref.level_value(result.code, level)
            other = fused(value, self.s.alpha[self.t] * 2.0 ** -44, self.p_before[i])
            self.see("bits: fused update", other != self.p[i])

    def moved_as_dct(self, block, result):
        zeros = [i for i in block.elements.values() if ref.bits(self.p_before[i]) == 2 ** 31]
        if not result.entries:
            self.see_of(block, "no entry, -0 stays", len(zeros))
            return
        self.see_of(block, "entries, -0 moves", sum(self.p[i] != 0 for i in zeros))
        for _, level in result.entries.values():
            self.see_of(block, f"level {level}")
        w, directions = ref.direction_scale(result, self.s.alpha[self.t]), ref.direction(result)
        for position, i in block.elements.items():
            u, p = directions[position], self.p_before[i]
            self.see_of(block, "bits: fused update", fused(-ref.f32(u), w, p) != self.p[i])
            self.see_of(block, "bits: u not rounded", ref.f32(p - ref.f32(u * w)) != self.p[i])


def check(name, scenario):
    """Prints the counts of a set; what it lacks is an error."""
    counts = Watched(scenario).counts
    print(f"{name}: " + ", ".join(f"{what} {n}" for what, n in sorted(counts.items()) if n))
    missing = [what for what in (" ".join(word.split()) for word in NEEDED[name].split("|"))
               if not counts.get(what)]
    if missing:
        raise SystemExit(f"{name} has no case of: {', '.join(missing)}")
