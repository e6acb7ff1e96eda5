#!/usr/bin/env python3
"""How DisTrO learns beside AdamW and SGD: about a hundred runs of half a minute of processor time each; goes on where it stopped.

    bench/convergence/study.py --build build/release --text FILE --out build/study             runs what is missing, the most telling first
    bench/convergence/study.py ... --question tune --question missed                             only those
    bench/convergence/study.py ... --short                                                       two runs of a hundred rounds
    bench/convergence/study.py ... --report docs/learning.md                                     runs nothing: writes what is known into the page, curves into images/

Every question prints a table; `lab.py` has model, text length and rounds of all of them. One seed chooses, three show what was chosen.
"""
import argparse
import dataclasses
import datetime
import itertools
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import curves  # noqa: E402
import page  # noqa: E402
from lab import ROUNDS, SEEDS, TOKENS_PER_ROUND, Lab, NotRun, Run  # noqa: E402

BETAS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
RATES = (5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2)
ADAMW_RATES = (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2)
SGD_RATES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0)  # a run's rate is at most 1
UP_RATE, DOWN_RATE = 10e6, 100e6  # bits a second: the report's slow link
QUESTIONS = {}


def question(function):
    QUESTIONS[function.__name__] = function
    return function


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, [*row, *[""] * (len(header) - len(row))])) + " |" for row in rows])


def rows_of(variants, cells):
    """A row of each (name, value): the name and cells(value), a list; what was not run says so."""
    rows = []
    for name, value in variants:
        try:
            rows.append([name, *cells(value)])
        except NotRun:
            rows.append([name, "not run yet"])
    return rows


def spread(losses):
    if len(losses) == 1:
        return f"{losses[0]:.3f} (one seed)"
    return f"{statistics.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})" + (" (two seeds)" if len(losses) == 2 else "")


def loss_of(lab, run):
    """Of three seeds, as far as they were run."""
    return spread(lab.losses(run.seeds()))


def bytes_of(lab, run):
    """(sent, received) of a worker in a round."""
    curves = lab.curves(run.seeds())
    return [statistics.mean(curve[-1][key] for curve in curves) / ROUNDS for key in ("sent_bytes", "received_bytes")]


def size(count):
    unit, name = next(((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= unit), (1, "B"))
    return f"{count / unit:.3g} {name}"


def neighbours(run, field, grid):
    at = grid.index(getattr(run, field))
    return [dataclasses.replace(run, **{field: value}) for value in grid[max(0, at - 1):at + 2]]


def climb(lab, base, grids):
    """(best run, settings tried), one seed: from `base`, or the best that is known, until both neighbours in every field lose. A lab that runs
    nothing goes as far as its runs allow, and says "so far"."""
    every = [dataclasses.replace(base, **dict(zip(grids, values))) for values in itertools.product(*grids.values())]
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


def distro(lab):
    return climb(lab, Run(lr=2e-3, beta=0.95), {"lr": RATES, "beta": BETAS})


def adamw(lab):
    return climb(lab, Run(method="adamw", lr=4e-3, beta=0.9, beta2=0.95), {"lr": ADAMW_RATES, "beta2": (0.9, 0.95, 0.99), "beta": BETAS})


def sgd(lab):
    return climb(lab, Run(method="sgd", lr=0.2, beta=0.9), {"lr": SGD_RATES, "beta": BETAS})


METHODS = (("DisTrO, K = 16", distro), ("All-Reduce, AdamW", adamw), ("All-Reduce, SGD with momentum", sgd))


def tuned(lab, methods):
    def cells(tune_one):
        best, tried = tune_one(lab)
        sent, received = bytes_of(lab, best)
        decay = f"{best.beta:g}" + (f", {best.beta2:g}" if best.beta2 else "")
        return [tried, f"{best.lr:g}", decay, loss_of(lab, best), f"{sent / 1e3:.1f} kB", f"{received / 1e3:.1f} kB"]
    header = ["method", "settings tried", "rate", "decay", "held-out loss", "sent a round", "received a round"]
    return table(header, rows_of(methods, cells))


@question
def tune(lab):
    """Learning rate and decay, each method by itself: one seed until every neighbour loses, three for the best."""
    return tuned(lab, METHODS[:2])


@question
def traffic(lab):
    """The report's Table 3 beside the same of these runs."""
    def row(sent, received, loss):
        seconds = max(8 * sent / UP_RATE, 8 * received / DOWN_RATE)
        return [size(sent) if sent else "", size(received), f"{seconds:.0f} s" if seconds > 100 else f"{seconds:.3g} s", loss]

    def cells(tune_one):
        best, _ = tune_one(lab)
        return row(*bytes_of(lab, best), loss_of(lab, best))
    rows = [["report (1.2 B, 32 workers), All-Reduce, AdamW", *row(0, 74.4e9, "2.449")], ["report, DisTrO", *row(2.8e6, 86.8e6, "2.373")]]
    rows += rows_of([(f"here (0.31 M, 8 workers), {name}", tune_one) for name, tune_one in METHODS[:2]], cells)
    return table(["run", "sent a step", "received a step", "on links of 10 Mbps up, 100 Mbps down", "loss"], rows)


@question
def overlap(lab):
    """Overlap 1 against 0, at the rate that is best for 0."""
    best, _ = distro(lab)
    variants = [(value, dataclasses.replace(best, overlap=value)) for value in (0, 1)]
    return table(["overlap", "held-out loss"], rows_of(variants, lambda run: [loss_of(lab, run)]))


@question
def missed(lab):
    """Updates that miss their round: error feedback of what was included against DeMo's, of everything."""
    best, _ = distro(lab)
    def cells(miss):
        return [loss_of(lab, dataclasses.replace(best, miss=miss, feedback_of_missed=always)) for always in (False, True)]
    rows = [["0 %", loss_of(lab, best), "the same"], *rows_of([("30 %", "0.3"), ("10 %", "0.1")], cells)]
    return table(["missed", "feedback of what was included", "feedback of everything"], rows)


def distro_keeping(lab, k):
    best, _ = distro(lab)
    return climb(lab, dataclasses.replace(best, k=k), {"lr": RATES, "beta": BETAS})


@question
def kept(lab):
    """K at W = 8, each tuned by itself."""
    def cells(k):
        found, tried = distro_keeping(lab, k)
        sent, received = bytes_of(lab, found)
        return [8 * k, tried, f"{found.lr:g}", f"{found.beta:g}", loss_of(lab, found), f"{sent / 1e3:.2f} kB", f"{received / 1e3:.1f} kB"]
    rows = rows_of([(k, k) for k in (64, 4, 1, 512, 16, 8, 32, 2)], cells)
    return table(["K", "W K", "settings tried", "rate", "decay", "held-out loss", "sent a round", "received a round"], sorted(rows, key=lambda row: row[0]))


@question
def votes(lab):
    """The sum of the votes against its sign; results cut to the strongest K' of a block against all."""
    best, _ = distro(lab)
    variants = [("sum of votes, lossless", best), ("sign of the sum", dataclasses.replace(best, one_vote=True))]
    variants += [(f"strongest {kept_votes} of a block", dataclasses.replace(best, kept_votes=kept_votes)) for kept_votes in (16, 32, 64)]
    rows = rows_of(variants, lambda run: [loss_of(lab, run), f"{bytes_of(lab, run)[1] / 1e3:.1f} kB"])
    return table(["result", "held-out loss", "received a round"], rows)


@question
def uneven(lab):
    """Workers that differ: by how often they miss a round, and by when they begin to count."""
    best, _ = distro(lab)
    variants = [("all alike", best), ("one of eight misses 9 of 10 rounds", dataclasses.replace(best, miss="0,0,0,0,0,0,0,0.9")),
                ("miss 0, 10, 30 and 60 %, two workers each", dataclasses.replace(best, miss="0,0,0.1,0.1,0.3,0.3,0.6,0.6")),
                ("four of eight count from round 100 on", dataclasses.replace(best, first_round="0,0,0,0,100,100,100,100"))]
    return table(["workers", "held-out loss"], rows_of(variants, lambda run: [loss_of(lab, run)]))


@question
def ideas(lab):
    """Warm-up of the rate, and the decay of long runs, beside what was tuned."""
    best, _ = distro(lab)
    variants = [(f"{rounds} rounds of warm-up", dataclasses.replace(best, warmup=rounds)) for rounds in (30, 10, 60)]
    variants.append(("decay 0.999, the default of a run", dataclasses.replace(best, beta=0.999)))
    return table(["setting", "held-out loss"], rows_of(variants, lambda run: [loss_of(lab, run)]))


@question
def workers(lab):
    """Workers and K at the same tokens a round: does W K decide? One seed."""
    best, _ = distro(lab)
    counts = (2, 4, 8, 16)
    def cells(product):
        runs = [dataclasses.replace(best, workers=count, k=product // count) for count in counts]
        lab.run(runs)
        known = lab.known(runs)
        return [f"{known[run]:.3f}" if run in known else "not run yet" for run in runs]
    return table(["W K", *(f"W = {count}" for count in counts)], rows_of([(product, product) for product in (128, 32, 512)], cells))


@question
def momentum(lab):
    """SGD with momentum and All-Reduce, tuned in the same way."""
    return tuned(lab, METHODS[2:])


def short_comparison(lab):
    """A hundred rounds, one seed, at good settings of three hundred."""
    runs = [("All-Reduce, AdamW", Run(method="adamw", lr=2e-3, beta=0.8, beta2=0.95)), ("DisTrO, K = 64", Run(lr=5e-3, beta=0.9, k=64))]
    def cells(run):
        end = lab.curves([dataclasses.replace(run, rounds=100, warmup=10)])[0][-1]
        return [f"{end['held_out_loss']:.3f}", size(end["sent_bytes"] / 100), size(end["received_bytes"] / 100)]
    return table(["method", "held-out loss", "sent a round", "received a round"], rows_of(runs, cells))


def draw_curves(lab, folder):
    """The first seed of the best of each method, and of DisTrO with few and many coefficients."""
    charted = [*METHODS, *((f"DisTrO, K = {k}", lambda lab, k=k: distro_keeping(lab, k)) for k in (4, 64))]
    found = {}
    for name, tune_one in charted:
        try:
            found[name] = lab.curves([tune_one(lab)[0]])[0]
        except NotRun:
            print(f"not drawn, since its runs have not been made: {name}")
    if found:
        curves.draw(found, folder)


def answer(lab, name):
    try:
        return QUESTIONS[name](lab)
    except NotRun:
        return "Not answered yet: its runs have not been made."


def write_report(lab, file):
    """Fills the places of the page for every question and for `conditions`."""
    tables = {name: answer(lab, name) for name in QUESTIONS}
    tables["conditions"] = (f"{datetime.date.today()}, {page.hardware()}: {lab.count()} runs of {ROUNDS} rounds of {TOKENS_PER_ROUND} tokens, "
                            f"{lab.text.stat().st_size / 1e6:.1f} MB of text; held-out loss in nats a byte, mean and range of {len(SEEDS)} seeds.")
    page.fill(file, tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with bin/convergence and bin/distroctl")
    parser.add_argument("--text", type=pathlib.Path, required=True, help="text to learn from, a megabyte or more")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for curves and configurations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--question", action="append", choices=QUESTIONS, help="default: all")
    parser.add_argument("--short", action="store_true", help="only AdamW and DisTrO once, a hundred rounds")
    parser.add_argument("--report", type=pathlib.Path, help="page that receives the tables of what has been run")
    options = parser.parse_args()
    lab = Lab(options.build / "bin/convergence", options.build / "bin/distroctl", options.text, options.out,
              jobs=0 if options.report else options.jobs)
    if options.report:
        write_report(lab, options.report)
        draw_curves(lab, options.report.parent / "images")
        return
    if options.short:
        print(short_comparison(lab))
        return
    for name in options.question or QUESTIONS:
        print(f"== {name}: {QUESTIONS[name].__doc__}", flush=True)
        print(QUESTIONS[name](lab), flush=True)


if __name__ == "__main__":
    main()
