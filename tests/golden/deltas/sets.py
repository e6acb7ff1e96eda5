"""The golden runs. Each docstring says what its set is for; coverage.py holds it to that."""
import math

import reference as ref
import transform
from layout import POSITIONS
from rounds import AWAY, IN_TIME, TOO_LATE, Scenario

TINY = 2.0 ** -149  # the smallest f32


class K8(Scenario):
    """K = 8, "senders", lossless, no window: attendance, exclusion, caps, edges, zeros."""

    def __init__(self):
        run = {"seed": 8, "tensors": [
                   ["a_vector", [130]], ["b_matrix", [66, 5]], ["c_wide", [5, 70]],
                   ["d_three", [3, 2, 5]], ["e_short", [5]], ["f_one", [1]]],
               "segment_blocks": 2, "k": 8, "inner_steps": 2, "window": False,
               "divisor": "senders", "floor_256": 0, "kept": None}
        rates = [[0.001 * (t + 1), 0.0015 * (t + 1)] for t in range(3)]
        rates += [[0.004, 0.0035], [0.003, 0.0025], [0.0015, 0.001], [1e-4, 5e-5]]
        super().__init__(run, 5, [1, 1, 0.9, 1.3, 1, 0.7, 0.1], [0.8, 0.5] + [0.8] * 5, rates)
        self.common = [self.random.noise() for _ in range(self.layout.elements)]

    def parameters(self):
        p = [ref.f32(0.05 * self.random.noise()) for _ in range(self.layout.elements)]
        for i in self.tensor("a_vector"):  # exact differences, so that magnitudes tie
            p[i] = -0.0 if i % 3 == 0 else 0.0
        for i in [*self.tensor("e_short"), *self.tensor("f_one")]:
            p[i] = 0.0
        p[self.tensor("e_short")[0]] = -0.0
        matrix = self.tensor("b_matrix")
        p[matrix[3]], p[matrix[4]], p[matrix[5]] = TINY, -2.0 ** -130, -0.0
        return p

    def attendance(self, t, w):
        if (w, t) in ((4, 0), (3, 3), (3, 4)):  # 4 joins at round 1, 3 misses two rounds
            return AWAY
        return TOO_LATE if (w, t) in ((3, 0), (4, 5)) else IN_TIME

    def steps(self, t, w):
        return 0 if (w, t) == (2, 6) else self.run["inner_steps"]

    def included(self, t, segment, w):
        if t == 1 and segment == 3:
            return w < 2  # two workers, whose records cancel; the next cap is without a median
        if t == 5 and segment == 2:
            return False  # nobody: N = 0
        return (t, w) != (4, 1) and (t, segment, w) not in ((0, 2, 2), (2, 1, 2), (2, 2, 0))

    def x(self, t, w, p):
        x = list(p)
        sizes = {"b_matrix": 1e-3, "c_wide": 4e-3, "d_three": 0.03, "e_short": 1e-4}
        for name, size in sizes.items():
            for i in self.tensor(name):
                loud = 100 if w == 2 and t in (0, 2, 3) else 1
                value = self.common[i] + self.random.noise()
                x[i] = ref.f32(p[i] - loud * size * value * abs(value))
        self.vector(t, w, p, x)
        self.short(t, w, p, x)
        self.one(t, w, p, x)
        if (w, t) == (1, 3):
            x[self.tensor("c_wide")[77]] = math.nan
        if (w, t) == (0, 6):
            x[-1] = -math.inf
        return x

    def vector(self, t, w, p, x):
        """Round 0: equal magnitudes everywhere; then few values, so that some still tie."""
        for i in self.tensor("a_vector"):
            size = 2.0 ** -9 if t == 0 else 2.0 ** -(8 + self.random.below(4))
            x[i] = ref.f32(p[i] - size * (1 if self.random.below(3) else -1))

    def short(self, t, w, p, x):
        """Round 0: nothing but the smallest f32, in a window that ends too late. Its product with
        beta rounds to -0 in round 1, where p - x is -0 too."""
        tensor = self.tensor("e_short")
        if t == 0:
            for i in tensor:
                x[i] = p[i]
            x[tensor[0]] = 0.0 if w != 3 else TINY
        elif t == 1:
            for j, i in enumerate(tensor):
                x[i] = ref.f32((-1 if w == 0 else 1) * 1e-3 * j) if j else 0.0

    def one(self, t, w, p, x):
        """About the smallest scale: empty records, code 0 and the next ones."""
        i = self.tensor("f_one")[0]
        x[i] = ref.f32(p[i] - (2.0 ** -36 if w == 0 else 2.0 ** -33 * (1 + (w - 1) / 4)))


class K32(Scenario):
    """K = 32, "all", the largest 60, a window with weights 1, 2, 1, 3: a whole block of 64 x 64,
    values beyond 1, positions that cancel by weight."""

    def __init__(self):
        run = {"seed": 2 ** 64 - 32, "tensors": [
                   ["a_square", [65, 65]], ["b_small", [3, 7]], ["c_vector", [100]]],
               "segment_blocks": 3, "k": 32, "inner_steps": 15, "window": True,
               "divisor": "all", "floor_256": 0, "kept": 60}
        rates = [[rate] * 15 for rate in (0.002, 0.0021, 0.0022)]
        super().__init__(run, 4, [3, 2.7, 1e-3], [0.95] * 3, rates)
        self.common = [self.random.noise() for _ in range(self.layout.elements)]

    def parameters(self):
        p = [ref.f32(0.02 * self.random.noise()) for _ in range(self.layout.elements)]
        for i in self.tensor("c_vector"):
            p[i] = 0.0
        p[self.tensor("a_square")[-1]] = 0.0
        return p

    def steps(self, t, w):
        return (1, 2, 1, 3)[w]

    def included(self, t, segment, w):
        return (t, segment, w) not in ((1, 0, 1), (2, 1, 3), (2, 1, 0))

    def x(self, t, w, p):
        x = list(p)
        for i in self.tensor("a_square"):
            value = self.common[i] + self.random.noise()
            x[i] = ref.f32(p[i] - (6e-4, 2e-3, 3e-4, 2e-3)[w] * value * abs(value))
        for i in self.tensor("b_small"):
            x[i] = ref.f32(p[i] - (1.7 if t < 2 else 1e-3) * (self.common[i] + self.random.noise()))
        for j, i in enumerate(self.tensor("c_vector")):
            near = (j + 7 * w + t) % 3 == 0
            x[i] = ref.f32(p[i] - (2.0 ** -8 if near else 2.0 ** -12) * (-1 if j % 5 == w else 1))
        if t == 0:  # the block of one element: 1 + 2 - 3, and an empty record
            x[self.tensor("a_square")[-1]] = (-0.01, -0.01, 0.0, 0.01)[w]
        return [ref.f32(value) for value in x]


class K1(Scenario):
    """K = 1, "senders" with a floor of a quarter, the largest 2, a window with unequal steps: lone
    senders, cuts among equals, small codes, a that overflows."""

    def __init__(self):
        run = {"seed": 1, "tensors": [
                   ["a_tall", [70, 3]], ["b_wide", [2, 66]], ["c_one", [1]], ["d_vector", [64]]],
               "segment_blocks": 4, "k": 1, "inner_steps": 4, "window": True,
               "divisor": "senders", "floor_256": 64, "kept": 2}
        rates = [[0.01, 0.01, 0.009, 0.009]] * 2 + [[1e-3] * 4] * 3
        super().__init__(run, 7, [1, 0.65, 1, 1, 0.65], [0.9] * 5, rates)

    def parameters(self):
        return [ref.f32(0.1 * self.random.noise()) for _ in range(self.layout.elements)]

    def steps(self, t, w):
        return 1 + (t + w) % 4

    def included(self, t, segment, w):
        return (t, segment, w) not in ((1, 0, 5), (1, 1, 5), (3, 0, 1), (3, 0, 2))

    def x(self, t, w, p):
        x = [ref.f32(value - 0.01 * self.random.noise() ** 3) for value in p]
        for i in self.tensor("b_wide"):
            x[i] = ref.f32(p[i] - 2.0 ** -31 * self.random.noise())
        one = self.tensor("c_one")[0]
        # 3e38 twice: the second sum is not finite. Later e is still far above the largest scale.
        x[one] = ref.f32(-3e38) if w == 6 and t < 2 else x[one]
        return x


class Dct(Scenario):
    """K = 8, "senders", lossless, no window: blocks that travel as their DCT, whole ones and edges,
    beside others that do not. The seed is one with which no record is near a tie."""

    def __init__(self):
        run = {"seed": 125, "tensors": [
                   ["a_square", [65, 70]], ["b_small", [3, 70]], ["c_embedding", [65, 5]],
                   ["d_vector", [70]]],
               "frequencies": ["a_square", "b_small"], "segment_blocks": 3, "k": 8,
               "inner_steps": 2, "window": False, "divisor": "senders", "floor_256": 0,
               "kept": None}
        rates = [[2e-4] * 2] + [[1e-3, 9e-4]] * 3
        super().__init__(run, 4, [1, 0.65, 1.3, 0.8], [0.9] * 4, rates)
        self.strong = [{self.random.below(POSITIONS): self.random.noise() for _ in range(14)}
                       for _ in self.layout.blocks]

    def parameters(self):
        p = [ref.f32(0.05 * self.random.noise()) for _ in range(self.layout.elements)]
        for i in self.tensor("b_small")[::5]:
            p[i] = -0.0
        return p

    def attendance(self, t, w):
        return AWAY if (t, w) == (1, 3) else IN_TIME

    def included(self, t, segment, w):
        return (t, segment, w) != (2, 1, 0)

    def x(self, t, w, p):
        x = list(p)
        for i in [*self.tensor("c_embedding"), *self.tensor("d_vector")]:
            x[i] = ref.f32(p[i] - 1e-3 * self.random.noise() ** 3)
        for b, block in enumerate(self.layout.blocks):
            if block.as_dct and (t, b) != (0, 5):  # the last block of b_small has nothing to say
                self.matrix(t, w, p, x, b, block)
        return x

    def matrix(self, t, w, p, x, b, block):
        """Strong frequencies that the workers have in common, but not all of their signs."""
        frequencies = {}
        for j, (position, size) in enumerate(self.strong[b].items()):
            flip = -1 if (j + t + w) % 4 < j % 3 else 1
            frequencies[position] = flip * 0.015 * size * (1 + 0.1 * self.random.noise())
        loud = 3 if (t, w) == (2, 2) else 1
        moved = transform.inverse(frequencies)
        for position, i in block.elements.items():
            x[i] = ref.f32(p[i] - loud * (moved[position] + 1e-4 * self.random.noise()))


SETS = {"k1": K1, "k8": K8, "k32": K32, "dct": Dct}
