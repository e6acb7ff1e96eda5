#!/usr/bin/env python3
"""How deltas learn beside AdamW and Muon with averaged gradients, and beside the signs method; a minute of processor time a run at the size
of a screening. Goes on where it stopped: a finished run is a line of results/*.jsonl.

    bench/convergence/study.py --build build/release --text FILE --out build/study             runs what is missing, the most telling first
    bench/convergence/study.py ... --question kept --question attackers                         only those
    bench/convergence/study.py ... --short                                                      two runs of a hundred steps, whatever is known
    bench/convergence/study.py ... --report docs/learning.md                                    runs nothing: writes what is known into the page

Every question prints a table; lab.py has models, tokens and steps of all of them. One seed chooses, three show what was chosen. A second
--text is the one of the question `sizes`.
"""
import argparse
import concurrent.futures
import datetime
import itertools
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import curves  # noqa: E402
import frontier  # noqa: E402
import page  # noqa: E402
from lab import MODELS, STEPS, TOKENS, Lab, NotRun, Run, parameters  # noqa: E402

RATES = (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2)
BETAS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
NOT_RUN = "not run yet"
QUESTIONS = {}


def question(function):
    QUESTIONS[function.__name__] = function
    return function


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, [*row, *[""] * (len(header) - len(row))])) + " |" for row in rows])


def rows_of(lab, variants, cells):
    """A row of each (name, value): the name and cells(value), a list; what was not run says so. As many rows at a time as the lab has jobs."""
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
    """Of three seeds, as far as they were run."""
    return spread(lab.losses(run.seeds()))


def bytes_of(lab, run):
    """(sent, received) of a worker in a step."""
    end = lab.curves([run])[0][-1]
    return end["sent_bytes"] / end["round"], end["received_bytes"] / end["round"]


def size(count):
    unit, name = next(((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= unit), (1, "B"))
    return f"{count / unit:.3g} {name}"


def traffic_of(lab, run):
    return [size(count) for count in bytes_of(lab, run)]


def neighbours(run, field, grid):
    at = grid.index(run.value(field))
    return [run.having(**{field: value}) for value in grid[max(0, at - 1):at + 2]]


def climb(lab, base, grids):
    """(best run, settings tried), one seed: from `base`, or the best that is known, until both neighbours in every field lose. A lab that runs
    nothing goes as far as its runs allow, and says "so far"."""
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
# First guesses, and what is tuned of each.
METHODS = {
    "Muon inside, H = 1, K = 32": (deltas(1, 32, lr=1.6e-2, beta=0.7, mu=0.9), MUON),
    "Muon inside, H = 5, K = 32": (deltas(5, 32, lr=1.6e-2, beta=0.8, mu=0.8), MUON),
    "AdamW, All-Reduce": (Run(method="adamw", lr=2e-3, beta1=0.7, beta2=0.99), {"lr": RATES} | DECAYS),
    "Muon, All-Reduce": (Run(method="muon", lr=8e-3, beta=0.95, beta1=0.9, beta2=0.95), CHOICES | DECAYS),
    "Muon inside, H = 1, K = 8": (deltas(1, 8, lr=1.6e-2, beta=0.8, mu=0.9), MUON),
    "Muon inside, H = 5, K = 8": (deltas(5, 8, lr=1.6e-2, beta=0.8, mu=0.8), MUON),
    "AdamW inside, H = 1, K = 32": (deltas(1, 32, **INSIDE), CHOICES),
    "AdamW inside, H = 5, K = 32": (deltas(5, 32, **INSIDE), CHOICES),
    "signs, K = 32": (Run(method="signs", lr=5e-3, beta=0.98, k=32), SIGNS),
    "signs, K = 128": (Run(method="signs", lr=5e-3, beta=0.98, k=128), SIGNS),
}
SHOWN = ("AdamW, All-Reduce", "Muon, All-Reduce", "Muon inside, H = 1, K = 8", "Muon inside, H = 5, K = 32", "signs, K = 32")
# What every question changes one thing of: near what the climbs of these two ended with.
BASES = (("H = 1", deltas(1, 32, lr=1.6e-2, beta=0.7, mu=0.9)), ("H = 5", deltas(5, 32, lr=1.6e-2, beta=0.8, mu=0.8)))


def tuned(lab, name):
    return climb(lab, *METHODS[name])


@question
def methods(lab):
    """Every method tuned by itself, from a first guess until every neighbour loses, one seed; then three of the best. Bytes of a step."""
    lab.run([first for first, _ in METHODS.values()])

    def cells(name):
        best, tried = tuned(lab, name)
        decays = [best.value(decay) for decay in ("beta", "mu", "beta1", "beta2")]
        return [tried, f"{best.lr:g}", ", ".join(f"{decay:g}" for decay in decays if decay is not None), loss_of_seeds(lab, best),
                *traffic_of(lab, best)]
    return table(["method", "settings tried", "rate", "decays", "held-out loss", "sent", "received"], rows_of(lab, [(name, name) for name in METHODS], cells))


def each(lab, variants, header="setting"):
    """One seed of each named run, with the bytes of a step."""
    return table([header, "held-out loss", "sent", "received"], rows_of(lab, variants, lambda run: [loss_of(lab, run), *traffic_of(lab, run)]))


@question
def attackers(lab):
    """One of eight workers is hostile; the round after which agreement suspects it, and the loss when it is then left out."""
    attacks = (("none", {}), ("the cap everywhere, signs as they are", {"attack": "cap"}), ("random signs", {"attack": "random"}),
               ("inverted signs, its own scales", {"attack": "inverted", "attack_multiple": 0}),
               ("inverted signs at the median", {"attack": "inverted", "attack_multiple": 1}),
               ("inverted signs at the cap", {"attack": "inverted_cap"}))
    defences = (("caps as they are", {}), ("no caps above 16 rates", {"cap_growth": 255}), ("C_min a quarter", {"rho": 0.25}),
                ("norms clipped at the median", {"norm_clip": 1}))
    rows = []
    for name, base in BASES:
        asked = defences if base.value("window") > 1 else defences[:1] + defences[3:4]
        for what, attack in attacks:
            def cells(defence):
                run = base.having(**attack, **defence)
                suspected, left_out = lab.suspected(run).get(7), run.having(quarantine=True)
                if suspected is None:
                    return [loss_of(lab, run)]
                lab.run([left_out])
                return [loss_of(lab, run), f"{suspected}", *(f"{loss:.3f}" for loss in lab.known([left_out]).values())]
            rows += [[f"{name}, {what}", *row] for row in rows_of(lab, asked, cells)]
    signs = METHODS["signs, K = 32"][0]
    rows += rows_of(lab, [(f"signs, {what}", signs.having(attack=attack) if attack else signs)
                     for what, attack in (("none", None), ("random signs", "random"), ("inverted signs", "inverted"))],
                    lambda run: ["one vote each", loss_of(lab, run)])
    return table(["attack", "defence", "held-out loss", "suspected after round", "and left out"], rows)


@question
def length(lab):
    """The distance over the length of the run: settings as tuned for 300 steps, the same share of warm-up; one seed. The rate is tuned again for 1000
    steps, and taken for 3000."""
    def cells(name):
        best, _ = tuned(lab, name)
        long, _ = climb(lab, best.having(steps=1000, warmup=100), {"lr": METHODS[name][1]["lr"]})
        runs = [best.having(steps=100, warmup=10), best, long, long.having(steps=3000, warmup=300)]
        lab.run(runs)
        known = lab.known(runs)
        return [f"{long.lr:g}", *(f"{known[run]:.3f}" if run in known else "" for run in runs)]
    return table(["method", "rate from 1000 steps on", *(f"{steps} steps" for steps in (100, 300, 1000, 3000))],
                 rows_of(lab, [(name, name) for name in SHOWN], cells))


@question
def windows(lab):
    """H inner steps, everything sent as it is: the ceiling of what a window can do, by the tokens of a worker and step. The rate is tuned with few."""
    def cells(window):
        base = Run(tokens=2048).having(window=window, k=4096, beta=0.0, mu=0.8, transform="none", values="float", levels=0, divisor="all", cap_growth=256)
        best, _ = climb(lab, base.having(lr=8e-3), {"lr": RATES})
        return [f"{best.lr:g}", loss_of(lab, best), loss_of(lab, best.having(tokens=16384))]
    return table(["H", "rate", "256 tokens", "2048 tokens"], rows_of(lab, [(h, h) for h in (1, 5, 10, 15, 30)], cells))


@question
def kept(lab):
    """H and K, with rate and decay of the buffer tuned for each."""
    def cells(at):
        base = dict(BASES)["H = 1" if at[0] == 1 else "H = 5"].having(window=at[0], k=at[1])
        best, tried = climb(lab, base, CHOICES)
        return [tried, f"{best.lr:g}, {best.value('beta'):g}", loss_of(lab, best), *traffic_of(lab, best)]
    pairs = ((1, 4), (1, 8), (1, 32), (1, 128), (3, 16), (5, 8), (5, 16), (5, 32), (10, 16), (10, 32), (15, 32), (30, 128))
    return table(["H, K", "settings tried", "rate, beta", "held-out loss", "sent", "received"],
                 rows_of(lab, [(f"{h}, {k}", (h, k)) for h, k in pairs], cells))


@question
def combining(lab):
    """Divisors, C_min and outer rates."""
    variants = []
    for name, base in BASES:
        variants += [(f"{name}, senders", base), (f"{name}, senders, C_min a quarter", base.having(rho=0.25))]
        variants += [(f"{name}, all, outer rate {alpha}, beta {beta:g}", base.having(divisor="all", alpha=alpha, beta=beta))
                     for alpha in (1, 2, 4) for beta in (base.value("beta"), 0.95)]
    return each(lab, variants)


@question
def inner(lab):
    """What runs inside."""
    base = BASES[1][1]
    variants = [("as tuned", base)]
    variants += [(f"mu {mu:g}", base.having(mu=mu)) for mu in (0.9, 0.8, 0.98)]
    variants += [(f"{steps} Newton-Schulz steps", base.having(newton_schulz=steps)) for steps in (3, 4, 7)]
    variants += [(f"step {scale:g} of the longer side's root", base.having(muon_scale=scale)) for scale in (0.1, 0.4)]
    variants += [(f"decays of AdamW {b1:g}, {b2:g}", base.having(beta1=b1, beta2=b2)) for b1, b2 in ((0.7, 0.99), (0.8, 0.95))]
    return each(lab, variants)


@question
def values(lab):
    """What is sent of a position."""
    rows = []
    for name, base in BASES:
        rows += [(f"{name}, {what}", base.having(values=value) if value != "bit" else base)
                 for value, what in (("bit", "a sign, a scale a block"), ("float", "floats"), ("two", "a sign and a bit, two scales a block"), ("tensor", "a sign, a scale a tensor"))]
    return each(lab, rows)


@question
def transform(lab):
    """The DCT of a block in the place of the block, each tuned; three seeds. Then a longer run."""
    def cells(at):
        name, on = at
        base, grids = METHODS[name]
        best, tried = climb(lab, base.having(transform=on), grids)
        longer = best.having(steps=1000, warmup=100, lr=best.lr / 2)
        lab.run([longer])
        return [tried, ", ".join(f"{best.value(field):g}" for field in grids), loss_of_seeds(lab, best), *(f"{loss:.3f}" for loss in lab.known([longer]).values())]
    names = [name for name in METHODS if name.startswith("Muon inside")]
    variants = [(f"{name}, {what}", (name, on)) for what, on in (("DCT of matrices", None), ("the block", "none"), ("DCT of everything", "all"))
                for name in names if on != "all" or "K = 32" in name]
    return table(["method", "settings tried", "rate, beta, mu", "held-out loss", "1000 steps, half the rate"], rows_of(lab, variants, cells))


@question
def download(lab):
    """What travels down: levels, and results cut to the largest K' of a block."""
    base = BASES[1][1]
    variants = [("8 levels, half an octave apart", base), ("floats", base.having(levels=0))]
    variants += [(f"{levels} levels, {step:g} octaves apart", base.having(levels=levels, level_step=step))
                 for levels, step in ((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (4, 0.5), (16, 0.25))]
    for keep in (64, 128):
        variants.append((f"cut to {keep}", base.having(keep=keep)))
        variants += [(f"cut to {keep}, {what}", base.having(keep=keep, **settings)) for what, settings in
                     (("feedback of all that was sent", {"feedback": "included"}), ("beta 0.95", {"beta": 0.95}), ("K = 16", {"k": 16}), ("divisor all, outer rate 3", {"divisor": "all", "alpha": 3}))]
    variants.append(("feedback of what was cancelled too", base.having(feedback="cancelled")))
    return each(lab, variants)


@question
def outer(lab):
    """The outer step, and where weight decays."""
    base = BASES[1][1]
    variants = [("as it is", base), ("outer rate 0.65 over the last tenth", base.having(alpha_end=0.65)), ("decay in the update", base.having(decay_in_update=True))]
    variants += [(f"outer rate {alpha:g}", base.having(alpha=alpha)) for alpha in (0.7, 1.4)]
    variants += [(f"Nesterov {mu:g}, outer rate {alpha:g}", base.having(nesterov=mu, alpha=alpha)) for mu, alpha in ((0.5, 0.5), (0.9, 0.1))]
    return each(lab, variants)


@question
def missed(lab):
    """Updates that miss their round, and workers that come late."""
    variants = []
    for name, base in BASES:
        late = STEPS // 3 // base.value("window")
        variants += [(f"{name}, all there", base), (f"{name}, 10 % missed", base.having(miss=0.1)), (f"{name}, 30 % missed", base.having(miss=0.3)),
                     (f"{name}, four of eight from a third of the run on", base.having(first_round=(0, 0, 0, 0, late, late, late, late)))]
    return each(lab, variants)


@question
def overlap(lab):
    """A result applied some steps into the next window."""
    variants = [(f"{name}, {later} later" if later else name, base.having(overlap=later) if later else base)
                for name, base in BASES for later in (0, 1, 3, 5) if later <= base.value("window")]
    return each(lab, variants)


@question
def workers(lab):
    """W workers at the same tokens a step."""
    variants = [(f"{name}, W = {count}", base.having(workers=count)) for name, base in BASES for count in (2, 4, 8, 16)]
    adamw, muon = tuned(lab, "AdamW, All-Reduce")[0], tuned(lab, "Muon, All-Reduce")[0]
    h3 = dict(BASES)["H = 5"].having(window=3, k=16)
    variants += [(f"{name}, W = {count}, 4096 tokens", run.having(workers=count, tokens=4096))
                 for name, run in (*BASES, ("H = 3, K = 16", h3), ("AdamW, All-Reduce", adamw), ("Muon, All-Reduce", muon)) for count in (8, 32)]
    return each(lab, variants)


@question
def sizes(lab):
    """A second text and a larger model, with the settings of the first but for the rate, which is tuned for each."""
    def cells(base):
        best, _ = climb(lab, base, {"lr": RATES if base.method != "signs" else SIGNS["lr"]})
        return [f"{best.lr:g}", loss_of(lab, best), *traffic_of(lab, best)]
    variants = [(f"{name}, {what}", tuned(lab, name)[0].having(**changed)) for what, changed in (("second text", {"text": 1}), ("1 M parameters", {"model": "1M"}),
                ("1 M parameters, second text", {"model": "1M", "text": 1})) for name in SHOWN]
    return table(["method", "rate", "held-out loss", "sent", "received"], rows_of(lab, variants, cells))


def short_comparison(lab):
    """A hundred steps, one seed, at good settings of three hundred."""
    runs = [("All-Reduce, AdamW", Run(method="adamw", lr=2e-3, beta1=0.8, beta2=0.95)), ("DisTrO, K = 64", Run(method="signs", lr=5e-3, beta=0.9, k=64))]
    def cells(run):
        end = lab.curves([run.having(steps=100, warmup=10)])[0][-1]
        return [f"{end['held_out_loss']:.3f}", size(end["sent_bytes"] / 100), size(end["received_bytes"] / 100)]
    return table(["method", "held-out loss", "sent a round", "received a round"], rows_of(lab, runs, cells))


KINDS = {("deltas", "muon"): "Muon inside", ("deltas", "adamw"): "AdamW inside", ("signs", None): "signs", ("muon", None): "Muon, All-Reduce",
         ("adamw", None): "AdamW, All-Reduce"}
WORST = 2.5  # a loss above it is not drawn


def draw_frontier(lab, folder):
    """Every run at the size of a screening, of every method."""
    groups = {name: [] for name in KINDS.values()}
    for line in lab.screened():
        run, (steps, _, loss, sent, received) = line["run"], line["curve"][-1]
        kind = (run["method"], run["deltas"].get("inner", "muon") if run["method"] == "deltas" else None)
        bits = 8 / parameters(MODELS[run["model"]]) / steps
        groups[KINDS[kind]].append((bits * sent, bits * (sent + received), loss))
    if any(groups.values()):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "learning_frontier.svg").write_text(frontier.chart("What it costs and what it learns: a dot is a run of 300 steps", groups, WORST))


def draw_curves(lab, folder):
    """The first seed of the best of five methods."""
    found = {}
    for name in SHOWN:
        try:
            found[name] = lab.curves([tuned(lab, name)[0]])[0]
        except NotRun:
            print(f"not drawn, since its runs have not been made: {name}")
    if found:
        curves.draw(found, folder)


def answer(lab, name):
    """The question's table, of what has been run."""
    try:
        lines = QUESTIONS[name](lab).splitlines()
    except NotRun:
        lines = []
    known = [line for line in lines if f"| {NOT_RUN} |" not in line]
    if len(known) <= 2:
        return "Not answered yet: its runs have not been made."
    rest = f"\n\n{len(lines) - len(known)} rows have not been run yet." if len(known) < len(lines) else ""
    return "\n".join(known) + rest


def write_report(lab, file):
    """Fills the places of the page for every question and for `conditions`."""
    tables = {name: answer(lab, name) for name in QUESTIONS}
    tables["conditions"] = (f"{datetime.date.today()}: {lab.count()} runs, of {STEPS} steps of {TOKENS} tokens where nothing else is said; "
                            "held-out loss in nats a byte; one seed, or mean and range of three.")
    page.fill(file, tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with bin/convergence and bin/distroctl")
    parser.add_argument("--text", type=pathlib.Path, action="append", required=True, help="text to learn from, a megabyte or more; a second one for `sizes`")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for models and scratch files")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "results", help="folder of *.jsonl, a line a finished run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a core each")
    parser.add_argument("--question", action="append", choices=QUESTIONS, help="default: all")
    parser.add_argument("--short", action="store_true", help="only AdamW and signs once, a hundred steps")
    parser.add_argument("--report", type=pathlib.Path, help="page that receives the tables of what has been run")
    options = parser.parse_args()
    results = options.out / "results" if options.short else options.results
    lab = Lab(options.build, options.text, options.out, results, jobs=0 if options.report else options.jobs)
    if options.report:
        write_report(lab, options.report)
        draw_curves(lab, options.report.parent / "images")
        draw_frontier(lab, options.report.parent / "images")
        return
    if options.short:
        print(short_comparison(lab))
        return
    for name in options.question or QUESTIONS:
        print(f"== {name}: {QUESTIONS[name].__doc__}", flush=True)
        print(QUESTIONS[name](lab), flush=True)


if __name__ == "__main__":
    main()
