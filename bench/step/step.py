#!/usr/bin/env python3
"""Compares a worker's step with the same model in PyTorch on the same cores, and shows the share of each phase. Prints two tables.

    python3 -m venv .deps/bench-python && .deps/bench-python/bin/pip install torch==2.11.0 numpy
    bench/step/step.py --build build/release --text FILE --python .deps/bench-python/bin/python

One distro-worker trains with a real aggregator over loopback; what it waits for the aggregator is no part of its step. PyTorch's step
is forward, backward, clipping and fused AdamW, of random tokens. The first steps of each warm it up; of the others the median counts.
The three are measured in turn, --repeat times; the best of each counts. Without --python there is no PyTorch to compare with: only the
second table.
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "aggregator_load"))
import load_run  # noqa: E402
import processes  # noqa: E402

BASE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 256, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "max_position_embeddings": 256, "tie_word_embeddings": False}
# The demo's model, and one with matrices large enough to keep a core busy.
MODELS = (
    {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4},
    {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8},
)
SEQUENCE, SAMPLES = 128, 8
WARM_UPS = 5  # steps, in which a process also fetches its memory, threads and libraries
NO_STEP = ("idle", "wait", "evaluate", "checkpoint")  # phases


def train(binaries, model, text, threads, steps):
    """Trains one worker alone. Returns the millions of its parameters and, of each step after the warm-up, the seconds by phase."""
    space = processes.Workspace(binaries)
    space.model = model
    try:
        rounds = WARM_UPS + steps
        run = space.write_run(rounds=rounds, sequence_length=SEQUENCE, samples_per_worker=SAMPLES, kept_per_block=43, segment_blocks=1024,
                              start_workers=1, evaluation_interval_rounds=rounds, evaluation_samples=1)
        aggregator = space.start_aggregator("--run", run, "--model", space.init_model())
        summary, lines = space.folder / "step.json", space.folder / "step.jsonl"
        worker = space.start("step", [binaries.worker, "--aggregator", aggregator.grpc, "--data", text, "--data_format", "text",
                                      "--name", "step", "--insecure", "--threads", threads, "--summary", summary, "--metrics_file", lines])
        if code := worker.exit_code(600):
            raise SystemExit(f"distro-worker ended with {code}: {worker.log()}")
        phases = [json.loads(line)["seconds"] for line in lines.read_text().splitlines()]
        return json.loads(summary.read_text())["parameters"] / 1e6, [without_waits(step) for step in phases[WARM_UPS:]]
    finally:
        space.close()


def without_waits(phases):
    return {name: seconds for name, seconds in phases.items() if name not in NO_STEP}


def seconds_of(step):
    return sum(step.values())


def pytorch_rate(python, config, threads, steps, *flags):
    command = [python, pathlib.Path(__file__).with_name("pytorch_step.py"), config, "--samples", SAMPLES, "--sequence", SEQUENCE,
               "--threads", threads, "--steps", steps, *flags]
    return json.loads(subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE).stdout)["tokens_per_second"]


def measure(binaries, model, options):
    """Millions of parameters, the median step by phase, and PyTorch's tokens per second, eager and compiled."""
    config = options.out / "config.json"
    config.write_text(json.dumps(model))
    medians, eager, compiled = [], [], []
    for _ in range(options.repeat):
        parameters, steps = train(binaries, model, options.text, options.threads, options.steps)
        medians.append(sorted(steps, key=seconds_of)[len(steps) // 2])
        if options.python:
            eager.append(pytorch_rate(options.python, config, options.threads, options.steps))
            compiled.append(pytorch_rate(options.python, config, options.threads, options.steps, "--compile"))
    return f"{parameters:.1f} M", min(medians, key=seconds_of), max(eager, default=None), max(compiled, default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator, distro-worker, distroctl")
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the models' configurations")
    parser.add_argument("--python", type=pathlib.Path, help="a Python with PyTorch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=25, help="after the warm-up")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    binaries = processes.programs_in(options.build.resolve() / "bin")
    options.out.mkdir(parents=True, exist_ok=True)
    measured = [measure(binaries, BASE | model, options) for model in MODELS]
    if options.python:
        load_run.print_head("| parameters | worker's step to PyTorch's, tokens a second | to torch.compile's |")
        for name, phases, eager, compiled in measured:
            rate = SEQUENCE * SAMPLES / seconds_of(phases)
            print(f"| {name} | {rate / eager:.2f} | {rate / compiled:.2f} |")
        print()
    names = list(measured[0][1])
    load_run.print_head(f"| share of a step | {' | '.join(names)} |")
    for name, phases, *_ in measured:
        print(f"| {name} | " + " | ".join(f"{phases[phase] / seconds_of(phases):.1%}" for phase in names) + " |")


if __name__ == "__main__":
    main()
