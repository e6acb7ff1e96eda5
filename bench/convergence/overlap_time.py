#!/usr/bin/env python3
"""Measures whether a step with overlap takes the longer of computing and exchanging, not their sum. Prints a table.

    bench/convergence/overlap_time.py --build build/release --text FILE --out build/overlap

One worker, whose results come back late by a delay; wall seconds of the rounds, without the first ones and without evaluations.
"""
import argparse
import json
import pathlib
import subprocess

import lab

ROUNDS = 40
SAMPLES = 16  # takes about as long to compute as the delay, on a core of 2024
DELAYS = ("0s", "200ms")


def seconds_a_round(options, model, overlap, delay):
    out = options.out / f"overlap={overlap}_delay={delay}"
    config = out.with_suffix(".json")
    config.write_text(json.dumps({
        "name": "overlap", "method": "signs", "seed": 1, "rounds": ROUNDS, "peak_learning_rate": 1e-3, "beta": 0.95, "kept_per_block": 43, "overlap": overlap,
        "sequence_length": lab.SEQUENCE, "samples_per_worker": SAMPLES, "evaluation_interval_rounds": ROUNDS // 4, "evaluation_samples": 1}))
    subprocess.run([options.build / "bin/convergence", "--run", config, "--model", model, "--data", options.text, "--link_delay", delay,
                    "--csv", out.with_suffix(".csv")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    points = lab.read_curve(out.with_suffix(".csv"))
    first, last = points[1], points[-1]
    return (last["seconds"] - first["seconds"]) / (last["round"] - first["round"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with bin/convergence and bin/distroctl")
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the model and the curves")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    model = lab.make_model(options.build / "bin/distroctl", lab.MODEL, options.out)
    print("| | " + " | ".join(f"a result after {delay}" for delay in DELAYS) + " |")
    print("|" + "---|" * (len(DELAYS) + 1))
    for overlap in (0, 1):
        times = [seconds_a_round(options, model, overlap, delay) for delay in DELAYS]
        print(f"| overlap {overlap}, wall a round | " + " | ".join(f"{1e3 * seconds:.0f} ms" for seconds in times) + " |", flush=True)


if __name__ == "__main__":
    main()
