#!/usr/bin/env python3
"""Trains a model with one of our methods for some time: workers that share one device, a real aggregator, loopback.

    learning.py --bin FOLDER --config examples/llama_125m/config.json --text FILE --method deltas --seconds 150
    learning.py ... --device cpu --samples 2 --sequence 64

The workers take 32 samples of 512 tokens a step, where there are four of them. Prints a line of JSON for each evaluation: step, tokens, held-out loss, the
bytes that a worker sent and received since the start, the seconds since the first round, and of the first worker those of each phase. After a warm-up the rate stays the
same, so that a run may stop at any step. adamw.py does the same with AdamW in PyTorch. Status 1: a process failed.
"""
import argparse
import collections
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/integration"))
import processes  # noqa: E402

WORKERS = 4
WARM_UP, INTERVAL, EVALUATED = 50, 10, 64  # steps, steps, samples
HELD_OUT = 0.05
# Chosen by the study of small models (docs/learning.md), smaller for more parameters; not tuned at this size.
METHODS = {"deltas": {"peak_learning_rate": 0.004, "local_steps": 1, "kept_per_block": 32}, "signs": {"peak_learning_rate": 0.0005, "beta": 0.95, "kept_per_block": 32}}
# Workers that share a GPU are late at times.
PATIENCE = ("--heartbeat_interval", "2s", "--suspect_after", "5m", "--lease", "10m")
KEPT = ("tokens", "sent_bytes", "received_bytes")


def write_run(space, options):
    run = {"name": "learning", "seed": 1, "rounds": 1000000, "method": options.method, "warmup_rounds": WARM_UP, "overlap": 0,
           "sequence_length": options.sequence, "samples_per_worker": options.samples, "held_out_fraction": HELD_OUT,
           "evaluation_interval_rounds": INTERVAL, "evaluation_samples": EVALUATED, "start_workers": options.workers,
           "min_workers": options.workers,
           **METHODS[options.method]}
    run["min_learning_rate"] = run["peak_learning_rate"]
    path = space.folder / "run.json"
    path.write_text(json.dumps(run))
    return path


def points(lines, workers=WORKERS):
    """The curve, from one worker's lines of rounds. The first line has the loss before training."""
    found, sums, phases, begin = [], dict.fromkeys(KEPT, 0), collections.Counter(), None
    for line in lines:
        if begin is None:  # its phases are those of the start
            begin = line["time"]
        else:
            phases.update(line["seconds"])
        sums = {key: sums[key] + line[key] for key in KEPT}
        if line["round"] > 0 and line.get("held_out_loss") is not None:
            found.append({"step": line["round"] + 1, "held_out_loss": line["held_out_loss"], "seconds": round(line["time"] - begin, 2),
                          **sums, "tokens": sums["tokens"] * workers,
                          "phases": {name: round(seconds, 2) for name, seconds in phases.items()}})
    return found


def train(space, options):
    """The curve of the time, and at least one point of it."""
    model = space.folder / "model"
    space.distroctl("init-model", "--config", options.config, "--seed", 1, "--out", model)
    aggregator = space.start_aggregator("--run", write_run(space, options), "--model", model, *PATIENCE)
    metrics = space.folder / "metrics.jsonl"
    for i in range(options.workers):
        space.start(f"worker-{i}", [space.binaries.worker, "--aggregator", aggregator.grpc, "--data", options.text, "--data_format", "text",
                                    "--name", f"worker-{i}", "--insecure", "--device", options.device,
                                    *(("--metrics_file", metrics) if i == 0 else ())])
    processes.until(lambda: all(process.alive() for process in space.processes) and metrics.exists() and metrics.stat().st_size, "the first round")
    end = time.monotonic() + options.seconds

    def curve():
        whole = metrics.read_text().rpartition("\n")[0]
        return points(map(json.loads, whole.splitlines()), options.workers)
    while (time.monotonic() < end or not curve()) and all(process.alive() for process in space.processes):
        time.sleep(0.2)
    return curve()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder with distro-aggregator, distro-worker and distroctl")
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="from the first round on")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--samples", type=int, default=8, help="of a worker, a step")
    parser.add_argument("--sequence", type=int, default=512)
    options = parser.parse_args()
    space = processes.Workspace(processes.programs_in(options.bin))
    try:
        for point in train(space, options):
            print(json.dumps({"name": options.method, **point}), flush=True)
    except AssertionError as error:
        print(f"learning: {error}", file=sys.stderr)
        return 1
    finally:
        space.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
