"""Runs of several rounds: a Scenario says what the workers did, reference.py what came of it."""
import itertools

import reference as ref
from layout import Layout

AWAY, IN_TIME, TOO_LATE = 0, 1, 2


class Random:
    """SplitMix64 in order, so that no library decides a bit."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        """[0, 1), a multiple of 2^-24."""
        self.state = (self.state + ref.G) & ref.MASK
        return (ref.mix(self.state) >> 40) * 2.0 ** -24

    def noise(self):
        """About normal, in -2..2."""
        return self.unit() + self.unit() + self.unit() + self.unit() - 2

    def below(self, count):
        return int(self.unit() * count)


class Scenario:
    """What a run is given. A set of golden rounds derives from it (sets.py)."""

    def __init__(self, run, workers, alpha, beta, rates):
        self.run, self.workers = run, workers
        self.alpha, self.beta = [ref.f32(a) for a in alpha], [ref.f32(b) for b in beta]
        self.rates = [[ref.f32(rate) for rate in row] for row in rates]  # [T][H]
        self.layout = Layout(run["tensors"], run["segment_blocks"], run.get("frequencies", []))
        self.random = Random(run["seed"])

    def tensor(self, name):
        """Its elements among those of the model."""
        return self.layout.tensors[[n for n, _ in self.run["tensors"]].index(name)]

    def parameters(self):
        """Before round 0."""
        raise NotImplementedError

    def attendance(self, t, w):
        return IN_TIME

    def steps(self, t, w):
        """h_w, 0 when none was done."""
        return self.run["inner_steps"]

    def x(self, t, w, p):
        """Where worker w is after its steps of round t, which it began at p."""
        raise NotImplementedError

    def included(self, t, segment, w):
        """Of a worker that has sent."""
        return True


class Rounds:
    """Plays a scenario. `rows` collects the golden arrays, name -> flat list, round after round."""

    def __init__(self, scenario):
        self.s, self.layout, self.run = scenario, scenario.layout, scenario.run
        self.p = scenario.parameters()
        self.e = [[0.0] * self.layout.elements for _ in range(scenario.workers)]
        self.medians = [None] * len(self.layout.tensors)
        self.rows = {"parameter_initial": list(self.p)}
        self.csr = {"sum_offset": [0], "result_offset": [0]}
        for t in range(len(scenario.alpha)):
            self.round(t)
        self.add("buffer", self.e[-1])

    def add(self, name, values):
        self.rows.setdefault(name, []).extend(values)

    def round(self, t):
        caps = [ref.cap(self.s.rates[t], median) for median in self.medians]
        self.add("cap", caps)
        weights, uploads = [], []
        for w in range(self.s.workers):
            steps = self.s.steps(t, w)
            weights.append(ref.weight(steps, self.run["inner_steps"], self.run["window"]))
            uploads.append(self.window(t, w, steps, caps))
        included = [[uploads[w] is not None and bool(self.s.included(t, segment, w))
                     for w in range(self.s.workers)] for segment in range(self.layout.segments)]
        self.add("weight", [n if upload else 0 for n, upload in zip(weights, uploads)])
        self.add("included", [bit for row in included for bit in row])
        results = self.combine(t, weights, uploads, included)
        for block, result in zip(self.layout.blocks, results):
            ref.apply_result(self.p, block, result, self.s.alpha[t])
        self.add("parameter", self.p)
        self.finish(uploads, included, results)

    def window(self, t, w, steps, caps):
        """Worker w's part: its records [B] (None: an empty one), or None when it sends nothing."""
        attendance = self.s.attendance(t, w)
        x = self.s.x(t, w, self.p) if attendance != AWAY else [0.0] * self.layout.elements
        self.add("x", x)
        self.add("attendance", [attendance])
        self.add("steps", [steps if attendance != AWAY else 0])
        a = ref.form(self.s.beta[t], self.e[w], self.p, x) if attendance != AWAY and steps else None
        if a is not None:
            self.e[w] = a
        records = None
        if a is not None and attendance == IN_TIME:
            records = [self.record(block, ref.block_values(a, block), caps[block.tensor])
                       for block in self.layout.blocks]
        self.add("sent", [records is not None])
        for record in records or [None] * len(self.layout.blocks):
            self.add("index", record.positions if record else [0] * self.run["k"])
            self.add("sign", record.signs if record else [0] * self.run["k"])
            self.add("code", [record.code if record else -1])
        return records

    def record(self, block, values, cap):
        return ref.make_record(values, self.run["k"], cap)

    def combine(self, t, weights, uploads, included):
        results, pairs = [], self.s.workers ** 2
        agree, disagree = [0] * pairs, [0] * pairs
        for b, block in enumerate(self.layout.blocks):
            counted = [w for w in range(self.s.workers) if included[self.layout.segment_of[b]][w]]
            records = {w: uploads[w][b] for w in counted if uploads[w][b]}
            means = ref.combine(block.inside, [(weights[w], records[w]) for w in records],
                                sum(weights[w] for w in counted), self.run["divisor"],
                                self.run["floor_256"])
            for w, other in itertools.permutations(records, 2):
                plus, minus = ref.agreement(block.inside, records[w], records[other])
                agree[w * self.s.workers + other] += plus
                disagree[w * self.s.workers + other] += minus
            results.append(ref.make_result(means, self.run["kept"], self.run["seed"], t, b))
            self.add_means(means)
            self.add_result(results[-1])
        self.add("agree", agree)
        self.add("disagree", disagree)
        return results

    def add_means(self, means):
        positions = sorted(means)
        self.add("sum_index", positions)
        self.add("sum_value", [means[i].total for i in positions])
        self.add("sum_count", [means[i].count for i in positions])
        self.add("mean", [means[i].r for i in positions])
        self.csr["sum_offset"].append(self.csr["sum_offset"][-1] + len(positions))

    def add_result(self, result):
        positions = sorted(result.entries)
        self.add("result_code", [-1 if result.code is None else result.code])
        self.add("result_index", positions)
        self.add("result_sign", [result.entries[i][0] for i in positions])
        self.add("result_level", [result.entries[i][1] for i in positions])
        self.csr["result_offset"].append(self.csr["result_offset"][-1] + len(positions))

    def finish(self, uploads, included, results):
        """Feedback, then the medians that the next round's caps follow from."""
        largest = [{} for _ in self.layout.tensors]  # per tensor: worker -> code
        for b, block in enumerate(self.layout.blocks):
            for w in range(self.s.workers):
                if included[self.layout.segment_of[b]][w] and uploads[w][b]:
                    codes = largest[block.tensor]
                    codes[w] = max(codes.get(w, 0), uploads[w][b].code)
                    ref.feed_back(self.e[w], block, uploads[w][b], results[b])
        self.medians = [self.median(list(codes.values()), before)
                        for codes, before in zip(largest, self.medians)]
        self.add("median", [-1 if median is None else median for median in self.medians])
        for e in self.e:
            self.add("buffer_hash", [
                0 if as_dct else ref.state_hash([e[i] for i in tensor])
                for tensor, as_dct in zip(self.layout.tensors, self.layout.as_dct)])
            if any(self.layout.as_dct):
                self.add("buffer_near", e)

    def median(self, codes, before):
        return ref.median_code(codes, before)

    def arrays(self):
        """name -> (dtype, shape, flat list)."""
        rounds, workers = len(self.s.alpha), self.s.workers
        blocks, tensors, n = len(self.layout.blocks), len(self.layout.tensors), self.layout.elements
        k, segments, inner = self.run["k"], self.layout.segments, self.run["inner_steps"]
        rows = self.rows | self.csr | {
            "alpha": self.s.alpha, "beta": self.s.beta,
            "rate": [rate for row in self.s.rates for rate in row]}
        of_upload = [rounds, workers, blocks]
        shapes = {
            "alpha": ("f32", [rounds]), "beta": ("f32", [rounds]), "rate": ("f32", [rounds, inner]),
            "parameter_initial": ("f32", [n]), "x": ("f32", [rounds, workers, n]),
            "attendance": ("u8", [rounds, workers]), "steps": ("u8", [rounds, workers]),
            "included": ("u8", [rounds, segments, workers]),
            "cap": ("u8", [rounds, tensors]), "median": ("i16", [rounds, tensors]),
            "sent": ("u8", [rounds, workers]), "weight": ("u8", [rounds, workers]),
            "index": ("u16", [*of_upload, k]), "sign": ("i8", [*of_upload, k]),
            "code": ("i16", of_upload),
            "agree": ("u32", [rounds, workers, workers]),
            "disagree": ("u32", [rounds, workers, workers]),
            "sum_offset": ("u32", None), "sum_index": ("u16", None), "sum_value": ("i64", None),
            "sum_count": ("u32", None), "mean": ("i64", None),
            "result_code": ("i16", [rounds, blocks]), "result_offset": ("u32", None),
            "result_index": ("u16", None), "result_sign": ("i8", None),
            "result_level": ("u8", None),
            "parameter": ("f32", [rounds, n]), "buffer": ("f32", [n]),
            "buffer_hash": ("u64", [rounds, workers, tensors]),
        }
        if any(self.layout.as_dct):
            shapes["buffer_near"] = ("f32", [rounds, workers, n])
        return {name: (dtype, shape or [len(rows[name])], rows[name])
                for name, (dtype, shape) in shapes.items()}
