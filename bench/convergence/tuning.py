"""Tunes the settings of each method: first guesses, the fields to tune, and the search; also makes rows of tables (page.table).

    best, tried = tuned(lab, "AdamW, All-Reduce")
    print(page.table(["run", "loss"], rows_of(lab, [("tuned", best)], lambda run: [loss_of(lab, run)])))
"""
import concurrent.futures
import itertools
import statistics

from lab import MODELS, NotRun, Run, parameters

RATES = (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2)
BETAS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
NOT_RUN = "not run yet"


def rows_of(lab, variants, cells):
    """One row per (name, value): the name and cells(value), a list; missing runs are marked. Computes as many rows at a time as the lab has jobs."""
    def row(variant):
        name, value = variant
        try:
            return [name, *cells(value)]
        except NotRun:
            return [name, NOT_RUN]
    with concurrent.futures.ThreadPoolExecutor(max(1, lab.jobs)) as pool:
        return list(pool.map(row, variants))


def spread(losses):
    if len(losses) == 1:
        return f"{losses[0]:.3f}"
    return f"{statistics.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"


def loss_of(lab, run):
    """One seed."""
    return spread(lab.losses([run]))


def loss_of_seeds(lab, run):
    """Mean and range of three seeds, of those that were run."""
    return spread(lab.losses(run.seeds()))


def bytes_of(lab, run):
    """(sent, received) bytes per worker and step."""
    end = lab.curves([run])[0][-1]
    return end["sent_bytes"] / end["round"], end["received_bytes"] / end["round"]


def bits_of(lab, run):
    """(sent, received) bits per worker, parameter and step."""
    return [8 * count / parameters(MODELS[run.model]) for count in bytes_of(lab, run)]


def size(count):
    unit, name = next(((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= unit), (1, "B"))
    return f"{count / unit:.3g} {name}"


def traffic_of(lab, run):
    return [size(count) for count in bytes_of(lab, run)]


def neighbours(run, field, grid):
    at = grid.index(run.value(field))
    return [run.having(**{field: value}) for value in grid[max(0, at - 1):at + 2]]


def climb(lab, base, grids):
    """(best run, settings tried), one seed: from `base`, or the best known run, until both neighbours in every field are worse. A lab that executes
    nothing goes as far as its finished runs allow, and marks the result "so far"."""
    every = [base.having(**dict(zip(grids, values))) for values in itertools.product(*grids.values())]
    while True:
        known = lab.known(every)
        best = min(known, key=known.get, default=base)
        asked = [[best]] + [neighbours(best, field, grid) for field, grid in grids.items()]
        missing = next((runs for runs in asked if not known.keys() >= set(runs)), None)
        if missing is None:
            return best, str(len(known))
        if lab.jobs == 0 and not known:
            raise NotRun
        if lab.jobs == 0:
            return best, f"{len(known)} so far"
        lab.run(missing)


def deltas(window, k, **settings):
    return Run().having(window=window, k=k, **settings)


DECAYS = {"beta1": BETAS, "beta2": (0.9, 0.95, 0.99)}  # of AdamW
CHOICES = {"lr": RATES, "beta": BETAS}
MUON = CHOICES | {"mu": BETAS}
SIGNS = {"lr": (1e-3, 2e-3, 5e-3, 1e-2, 2e-2), "beta": BETAS}
INSIDE = {"lr": 4e-3, "beta": 0.8, "inner": "adamw", "beta1": 0.7, "beta2": 0.99}
# First guesses, and the fields to tune.
METHODS = {
    "deltas, H = 1, K = 32": (deltas(1, 32, lr=1.6e-2, beta=0.7, mu=0.9), MUON),
    "deltas, H = 5, K = 32": (deltas(5, 32, lr=1.6e-2, beta=0.8, mu=0.8), MUON),
    "AdamW, All-Reduce": (Run(method="adamw", lr=2e-3, beta1=0.7, beta2=0.99), {"lr": RATES} | DECAYS),
    "Muon, All-Reduce": (Run(method="muon", lr=8e-3, beta=0.95, beta1=0.9, beta2=0.95), CHOICES | DECAYS),
    "deltas, H = 1, K = 8": (deltas(1, 8, lr=1.6e-2, beta=0.8, mu=0.9), MUON),
    "deltas, H = 5, K = 8": (deltas(5, 8, lr=1.6e-2, beta=0.8, mu=0.8), MUON),
    "deltas of AdamW, H = 1, K = 32": (deltas(1, 32, **INSIDE), CHOICES),
    "deltas of AdamW, H = 5, K = 32": (deltas(5, 32, **INSIDE), CHOICES),
    "signs, K = 32": (Run(method="signs", lr=5e-3, beta=0.98, k=32), SIGNS),
    "signs, K = 128": (Run(method="signs", lr=5e-3, beta=0.98, k=128), SIGNS),
}
SHOWN = ("AdamW, All-Reduce", "Muon, All-Reduce", "deltas, H = 1, K = 8", "deltas, H = 5, K = 32", "signs, K = 32")
# The base settings of which each question changes one: near the results of tuning these two.
BASES = (("H = 1", deltas(1, 32, lr=1.6e-2, beta=0.7, mu=0.9)), ("H = 5", deltas(5, 32, lr=1.6e-2, beta=0.8, mu=0.8)))


def tuned(lab, name):
    return climb(lab, *METHODS[name])
