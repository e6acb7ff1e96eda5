"""Single steps of the method on inputs that a run does not meet, extreme ones among them."""
import combine
import frequencies
import reference as ref
from arrays import Rows
from rounds import Random


def tables():
    alphas = [ref.f32(alpha) for alpha in (1, 0.65, 3.3, 1e-3)]
    codes, levels = range(ref.CODES), range(len(ref.T))
    return {
        "magnitude": ("u64", [ref.CODES], [ref.magnitude(c) for c in codes]),
        "level_value": ("u64", [ref.CODES, 8],
                        [ref.level_value(c, l) for c in codes for l in levels]),
        "alpha": ("f32", [len(alphas)], alphas),
        "step": ("f32", [len(alphas), ref.CODES, 8],
                 [ref.step(alpha, c, l) for alpha in alphas for c in codes for l in levels]),
    }


def code_blocks(random):
    """Values of a block's chosen positions: on both sides of every border that f32 can show."""
    for count in (1, 2, 3, 8, 32):
        borders = [ref.magnitude(0) // 2]  # of a mean, below which a record is empty
        for code in range(0, ref.CODES - 1, 1 if count == 1 else 9):
            borders.append((ref.magnitude(code) + ref.magnitude(code + 1)) // 2)
        for border in borders:
            for off in (-1, -0.5, 0, 0.5, 1):  # exact in f32 while the border is below 2^23
                yield [(border + off) / ref.UNIT] + [border / ref.UNIT] * (count - 1)
    for value in (0.0, -0.0, 1.0, 0.46875, -0.484375, 0.4844, 2.0, 3.4e38, 1e-45):
        yield [value]
    yield [2.0 ** -149, -0.0, 0.0]
    yield [3e38, 0.0, 0.0, 0.0]  # saturates at 1: a mean of a quarter
    for _ in range(60):
        scale = 2.0 ** -(36 * random.unit())
        yield [ref.f32(scale * random.noise()) for _ in range(1 + random.below(32))]


def codes():
    rows = Rows("value")
    for block in code_blocks(Random(44)):
        block = [ref.f32(value) for value in block]
        code = ref.scale_code(block)
        rows.extend(value=block)
        rows.end("value", len(block))
        rows.add(code=-1 if code is None else code)
    return rows.arrays(value_offset="u32", value="f32", code="i16")


def caps():
    random, rows, inner_steps = Random(16), Rows(), 5
    cases = [([0.0] * 5, 10), ([1e-10] * 5, -1), ([1.0] * 5, -1), ([1.0] * 5, 3), ([0.5] * 5, 255)]
    for _ in range(80):
        rate = 2.0 ** -(2 + 30 * random.unit())
        rates = [ref.f32(rate * (0.9 + 0.2 * random.unit())) for _ in range(inner_steps)]
        cases.append((rates, -1 if random.below(4) == 0 else random.below(ref.CODES)))
    for rates, median in cases:
        rates = [ref.f32(rate) for rate in rates]
        rows.extend(rate=rates)
        rows.add(median=median, cap=ref.cap(rates, None if median < 0 else median))
    arrays = rows.arrays(rate="f32", median="i16", cap="u8")
    return arrays | {"rate": ("f32", [len(cases), inner_steps], rows.lists["rate"])}


def updates():
    """Single parameters: zeros of both signs, denormals, huge ones, and every code and level."""
    random, rows = Random(32), Rows()
    special = [0.0, -0.0, 1e-45, -1e-45, 1e-40, -1e-39, 1.1754944e-38, 3e38, -3e38, 1.0, -1.0]
    for n in range(1024):
        p = special[n % 11] if n < 220 else 0.2 * random.noise()
        code, level = random.below(ref.CODES), random.below(8)
        sign, alpha = random.below(2) * 2 - 1, ref.f32(0.1 + 2 * random.unit())
        if n % 16 == 5:
            p = sign * ref.step(alpha, code, level)  # the difference is +0
        rows.add(p=ref.f32(p), alpha=alpha, code=code, level=level, sign=sign,
                 result=ref.move(ref.f32(p), alpha, code, sign, level))
    return rows.arrays(p="f32", alpha="f32", code="u8", level="u8", sign="i8", result="f32")


PARTS = {"tables": tables, "codes": codes, "caps": caps, "updates": updates,
         "combine": combine.arrays, "frequencies": frequencies.arrays}
