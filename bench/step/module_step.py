#!/usr/bin/env python3
"""A step of distro_train.Optimizer beside plain PyTorch's with fused AdamW, on the same cores, without a network. Prints a table.

    scripts/install_dependencies --with_python
    bench/step/module_step.py --build build/release --python .deps/pytorch/bin/python3 --out /tmp/step
    bench/step/module_step.py ... --ranks 2 4        in as many processes, with FSDP2 and gloo

A program in PyTorch trains a Llama: forward and backward of random tokens, then the rest of a step. It is measured in turn with each of

    plain      clip_grad_norm_, fused AdamW
    run        distro_train.Optimizer with the same AdamW as its inner optimizer, alone in a run with an aggregator on loopback, that
               exchanges after each step, or after every fifth

--repeat times; the least of each counts. "Ours" is the rest of a step less that of plain, and its share of a plain step and ours. All
figures but the last are processor time of the program's processes, so that waiting is no part of them and other programs of the
machine change little; the last is time.
"""
import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "aggregator_load"))
import load_run  # noqa: E402
import processes  # noqa: E402
import step  # noqa: E402

LOCAL_STEPS = (1, 5)
PROGRAM = pathlib.Path(__file__).with_name("module_program.py")


def run_program(options, *arguments, ranks=1):
    several = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", ranks) if ranks > 1 else ()
    command = [str(part) for part in (options.python, "-B", *several, PROGRAM, *arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(options.build / "python")})
    return json.loads(done.stdout)


def measure_run(binaries, config, local_steps, ranks, options):
    """Readings of a program that is alone in a run."""
    space = processes.Workspace(binaries)
    try:
        keys = {**dict.fromkeys(processes.METHODS["signs"]), **processes.METHODS["deltas"]}  # None: without the key
        run = space.write_run(**{**keys, "method": "deltas", "rounds": (options.steps + step.WARM_UPS) // local_steps, "sequence_length": step.SEQUENCE,
                                 "samples_per_worker": step.SAMPLES, "local_steps": local_steps, "start_workers": 1,
                                 "segment_blocks": 1024, "kept_per_block": 32, "warmup_rounds": 0, "workers": "python",
                                 "data_fingerprint": "any"})
        run_program(options, config, "--initial", space.folder / "initial")
        aggregator = space.start_aggregator("--run", run, "--model", space.folder / "initial")
        return run_program(options, config, "--threads", options.threads, "--aggregator", aggregator.grpc, ranks=ranks)
    finally:
        space.close()


def measure(binaries, model, ranks, options):
    """Readings of the plain program, and of runs by local steps; the least."""
    config = options.out / "config.json"
    config.write_text(json.dumps(model))
    plain, runs = [], {local_steps: [] for local_steps in LOCAL_STEPS}
    for _ in range(options.repeat):
        plain.append(run_program(options, config, "--threads", options.threads, "--steps", options.steps, ranks=ranks))
        for local_steps, readings in runs.items():
            readings.append(measure_run(binaries, config, local_steps, ranks, options))
    return least(plain), {local_steps: least(readings) for local_steps, readings in runs.items()}


def least(readings):
    return {name: min(one[name] for one in readings) for name in readings[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator and distro_train")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="a Python with PyTorch")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the models' configurations")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1], help="processes (default 1)")
    parser.add_argument("--threads", type=int, default=1, help="of each process (default 1)")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    options.build = options.build.resolve()
    binaries = processes.programs_in(options.build / "bin")
    options.out.mkdir(parents=True, exist_ok=True)
    load_run.print_head("| parameters | ranks | plain step | local steps | step in a run | ours | compress and apply, time |")
    for model, ranks in itertools.product((step.BASE | model for model in step.MODELS), options.ranks):
        plain, runs = measure(binaries, model, ranks, options)
        for local_steps, run in runs.items():
            ours = run["rest"] - plain["rest"]
            print(f"| {run['parameters'] / 1e6:.1f} M | {ranks} | {plain['step'] * 1e3:.0f} ms | {local_steps} | {run['step'] * 1e3:.0f} ms | "
                  f"{ours * 1e3:.1f} ms, {ours / (plain['step'] + ours):.1%} | {run['kernels'] * 1e3:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
