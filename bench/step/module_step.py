#!/usr/bin/env python3
"""A step of distro_train.Optimizer beside plain PyTorch's with fused AdamW, on the same cores, without a network. Prints a table.

    PYTHONPATH=build/release/python bench/step/module_step.py --build build/release --python .deps/pytorch/bin/python3

A program in PyTorch trains a Llama: forward and backward of random tokens, then the step. It is measured in turn with each of

    plain      clip_grad_norm_, fused AdamW
    run        distro_train.Optimizer with the same AdamW as its inner optimizer, alone in a run of --local_steps local steps: an
               aggregator on loopback, for which it waits as little as there can be; what it waits is no part of the step

--repeat times; the best of each counts. Compress and apply are those of the run's own readings (docs/worker.md, "Summary").
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "aggregator_load"))
import load_run  # noqa: E402
import processes  # noqa: E402
import step  # noqa: E402

PROGRAM = pathlib.Path(__file__).with_name("module_program.py")


def run_program(python, *arguments):
    command = [str(part) for part in (python, "-B", PROGRAM, *arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def measure_run(binaries, config, options):
    """Readings of a program that is alone in a run."""
    space = processes.Workspace(binaries)
    try:
        keys = {**dict.fromkeys(processes.METHODS["signs"]), **processes.METHODS["deltas"]}  # None: without the key
        run = space.write_run(**{**keys, "method": "deltas", "rounds": options.rounds, "sequence_length": step.SEQUENCE,
                                 "samples_per_worker": step.SAMPLES, "local_steps": options.local_steps, "start_workers": 1,
                                 "segment_blocks": 1024, "kept_per_block": 32, "warmup_rounds": 0, "workers": "python",
                                 "data_fingerprint": "any"})
        run_program(options.python, config, "--initial", space.folder / "initial")
        aggregator = space.start_aggregator("--run", run, "--model", space.folder / "initial")
        return run_program(options.python, config, "--threads", options.threads, "--aggregator", aggregator.grpc)
    finally:
        space.close()


def measure(binaries, model, options):
    """Least seconds of a plain step, and of a run's readings those with the least step."""
    config = options.out / "config.json"
    config.write_text(json.dumps(model))
    plain, runs = [], []
    for _ in range(options.repeat):
        plain.append(run_program(options.python, config, "--threads", options.threads, "--steps", options.rounds * options.local_steps))
        runs.append(measure_run(binaries, config, options))
    return min(one["step"] for one in plain), min(runs, key=lambda one: one["step"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator and distroctl")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="a Python with PyTorch and distro_train")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the models' configurations")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--local_steps", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    binaries = processes.programs_in(options.build.resolve() / "bin")
    options.out.mkdir(parents=True, exist_ok=True)
    load_run.print_head("| parameters | plain PyTorch's step | the run's | compress and apply, of that | of a round's exchange alone |")
    for model in (step.BASE | model for model in step.MODELS):
        plain, run = measure(binaries, model, options)
        print(f"| {run['parameters'] / 1e6:.1f} M | {plain * 1e3:.1f} ms | {run['step'] * 1e3:.1f} ms | "
              f"{(run['compress'] + run['apply']) / run['step']:.1%} | {run['exchange'] * 1e3:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
