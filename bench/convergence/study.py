#!/usr/bin/env python3
"""How deltas learn beside AdamW and Muon with averaged gradients, and beside the signs method; a minute of processor time a run at the size
of a screening. Continues where it stopped: a finished run is a line of results/*.jsonl.

    bench/convergence/study.py --build build/release --text FILE --out build/study             runs what is missing, the most important first
    bench/convergence/study.py ... --question kept --question attackers                         only those
    bench/convergence/study.py ... --short                                                      two runs of a hundred steps, also if finished before
    bench/convergence/study.py ... --report docs/learning.md                                    runs nothing: writes the finished runs into README.md
                                                                                                beside this file, and draws the page's images

Every question (questions.py) prints a table; tuning.py has the methods and how they are tuned, lab.py models, tokens and steps of all runs. A
second --text is the one of the question `sizes`, a third one (text.py makes it) that of `together` and others.
"""
import argparse
import datetime
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import cost  # noqa: E402
import curves  # noqa: E402
import page  # noqa: E402
from lab import STEPS, TOKENS, Lab, NotRun, Run  # noqa: E402
from questions import QUESTIONS  # noqa: E402
from tuning import NOT_RUN, SHOWN, bits_of, rows_of, size, tuned  # noqa: E402


def short_comparison(lab):
    """A hundred steps, one seed, with good settings for three hundred."""
    runs = [("All-Reduce, AdamW", Run(method="adamw", lr=2e-3, beta1=0.8, beta2=0.95)), ("DisTrO, K = 64", Run(method="signs", lr=5e-3, beta=0.9, k=64))]
    def cells(run):
        end = lab.curves([run.having(steps=100, warmup=10)])[0][-1]
        return [f"{end['held_out_loss']:.3f}", size(end["sent_bytes"] / 100), size(end["received_bytes"] / 100)]
    return page.table(["method", "held-out loss", "sent a round", "received a round"], rows_of(lab, runs, cells))


def known(lab, names, drawn):
    """{name: drawn(its tuned run)} of the methods whose runs have been made."""
    found = {}
    for name in names:
        try:
            found[name] = drawn(tuned(lab, name)[0])
        except NotRun:
            print(f"not drawn, since its runs have not been made: {name}")
    return found


def draw_cost(lab, folder):
    """The mean loss of six methods against what they send."""
    found = known(lab, (*SHOWN, "deltas, H = 1, K = 32"), lambda run: (
        bits_of(lab, run)[0], statistics.mean(lab.losses(run.seeds()))))
    if found:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "learning_cost.svg").write_text(cost.chart(f"What it costs and what it learns in {STEPS} steps", found))


def draw_curves(lab, folder):
    """The first seed of five methods."""
    found = known(lab, SHOWN, lambda run: lab.curves([run])[0])
    if found:
        curves.draw(found, folder)


def answer(lab, name):
    """The question's table, from the finished runs."""
    try:
        lines = QUESTIONS[name](lab).splitlines()
    except NotRun:
        lines = []
    known = [line for line in lines if f"| {NOT_RUN} |" not in line]
    if len(known) <= 2:
        return "Not answered yet: its runs have not been made."
    rest = f"\n\n{len(lines) - len(known)} rows have not been run yet." if len(known) < len(lines) else ""
    return "\n".join(known) + rest


def write_report(lab, pages):
    """Fills in the tables for every question and `conditions`, each on the page that has its place."""
    tables = {name: answer(lab, name) for name in QUESTIONS}
    tables["conditions"] = (f"{datetime.date.today()}: {lab.count()} runs, of {STEPS} steps of {TOKENS} tokens unless stated. "
                            "Losses are held-out, in nats a byte; of one seed, or mean and range of three.")
    page.fill_each(pages, tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with bin/convergence and bin/distroctl")
    parser.add_argument("--text", type=pathlib.Path, action="append", required=True, help="text to learn from, a megabyte or more; a second one for `sizes`, a third one for `together`")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for models and scratch files")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results", help="folder of *.jsonl, one line per finished run")
    parser.add_argument("--jobs", type=int, default=1, help="parallel runs, one core each")
    parser.add_argument("--question", action="append", choices=QUESTIONS, help="default: all")
    parser.add_argument("--short", action="store_true", help="only AdamW and signs once, a hundred steps")
    parser.add_argument("--report", type=pathlib.Path, help="page whose folder gets the images; the tables of the finished runs go into README.md beside this file")
    options = parser.parse_args()
    results = options.out / "results" if options.short else options.results
    lab = Lab(options.build, options.text, options.out, results, jobs=0 if options.report else options.jobs)
    if options.report:
        write_report(lab, [options.report, HERE / "README.md"])
        draw_curves(lab, options.report.parent / "images")
        draw_cost(lab, options.report.parent / "images")
        return
    if options.short:
        print(short_comparison(lab))
        return
    for name in options.question or QUESTIONS:
        print(f"== {name}: {QUESTIONS[name].__doc__}", flush=True)
        print(QUESTIONS[name](lab), flush=True)


if __name__ == "__main__":
    main()
