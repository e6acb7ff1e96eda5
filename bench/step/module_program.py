#!/usr/bin/env python3
"""Training steps of a Llama in PyTorch, plain or as a worker of a run; module_step.py calls it.

    module_program.py CONFIG.json --threads 2 --steps 60                        plain
    module_program.py CONFIG.json --initial FOLDER                              what a run of it is created from
    module_program.py CONFIG.json --threads 2 --aggregator HOST:PORT            as a worker, alone, until the run is done

Prints a line of JSON: seconds of the median step (plain), or means over all steps and rounds: `step` without what it waited for the
aggregator, `compress` and `apply` of a step, `exchange` of a round (compress and apply).
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pytorch_llama import Llama  # noqa: E402
from step import SAMPLES, SEQUENCE  # noqa: E402

WARM_UPS = 5
OUTSIDE = ("weights.0", "weights.1")  # embedding and head


class TimedAdamW(torch.optim.AdamW):
    seconds = 0.0

    def step(self, closure=None):
        begin = time.monotonic()
        super().step(closure)
        TimedAdamW.seconds += time.monotonic() - begin


def adamw(parameters, kind=torch.optim.AdamW):
    return kind(parameters, lr=1e-3, weight_decay=0.1, fused=True)


def loss_of(model, text):
    return model(text[:, :-1], text[:, 1:].contiguous())


def plain(model, config, steps):
    optimizer = adamw(model.parameters())
    seconds = []
    for _ in range(WARM_UPS + steps):
        text = torch.randint(config["vocab_size"], (SAMPLES, SEQUENCE + 1))
        begin = time.monotonic()
        loss_of(model, text).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.monotonic() - begin)
    return {"step": statistics.median(seconds[WARM_UPS:])}


def as_worker(model, config, aggregator):
    import distro_train
    steps = rounds = 0
    with distro_train.connect(aggregator, insecure=True, name="step", model=model, fingerprint=None, state_interval_rounds=0) as run:
        optimizer = distro_train.Optimizer(run, lambda parameters: adamw(parameters, TimedAdamW))
        samples = torch.randint(config["vocab_size"], (SAMPLES * 1000, SEQUENCE + 1))
        begin = None
        for text in run.batches(samples, torch.stack):
            loss = loss_of(model, text)
            loss.backward()
            if begin is not None:
                steps += 1
            if not optimizer.step(loss):
                continue
            readings = run.summary()["phase_seconds"]
            if begin is None:  # the first round warms up
                begin, before, TimedAdamW.seconds = time.monotonic(), readings, 0.0
            else:
                rounds += 1
                end, after = time.monotonic(), readings
        spent = {phase: after[phase] - before[phase] for phase in after}
        compress = spent["compress"] - TimedAdamW.seconds
        return {"step": (end - begin - spent["wait"]) / steps, "compress": compress / steps, "apply": spent["apply"] / steps,
                "exchange": (compress + spent["apply"]) / rounds, "parameters": run.summary()["parameters"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--initial")
    parser.add_argument("--aggregator")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = json.loads(options.config.read_text())
    model = Llama(config, "cpu", torch.float32)
    if options.initial:
        import distro_train
        distro_train.save_initial(model, options.initial, outside=OUTSIDE)
        print("{}")
    elif options.aggregator:
        print(json.dumps(as_worker(model, config, options.aggregator)))
    else:
        print(json.dumps(plain(model, config, options.steps)))


if __name__ == "__main__":
    main()
