#!/usr/bin/env python3
"""Training steps of a Llama in PyTorch, plain or as a worker of a run; module_step.py calls it.

    module_program.py CONFIG.json --threads 2 --steps 60                        plain
    module_program.py CONFIG.json --initial FOLDER                              what a run of it is created from
    module_program.py CONFIG.json --threads 2 --aggregator HOST:PORT            as a worker, alone, until the run is done

Prints a line of JSON, in seconds of processor time: `step` of a step, all threads together; as a worker also `ours`, what of it other
threads than the program's take: gradient norm, clipping, compress, apply, and sending and receiving; and of these `kernels`, the time,
not processor time, of the phases compress and apply.
"""
import argparse
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pytorch_llama import Llama  # noqa: E402
from pytorch_step import adamw, loss_of, train_step  # noqa: E402
from step import SAMPLES, SEQUENCE, WARM_UPS  # noqa: E402

OUTSIDE = ("weights.0", "weights.1")  # embedding and head


def plain(model, config, steps):
    optimizer = adamw(model.parameters())
    for step in range(WARM_UPS + steps):
        if step == WARM_UPS:
            begin = time.process_time()
        train_step(model, model, optimizer, torch.randint(config["vocab_size"], (SAMPLES, SEQUENCE + 1)))
    return {"step": (time.process_time() - begin) / steps}


def as_worker(model, config, aggregator):
    import distro_train
    def readings():
        phases = run.summary()["phase_seconds"]
        return time.process_time(), time.thread_time(), phases["compress"] + phases["apply"]

    steps, begin = 0, None
    with distro_train.connect(aggregator, insecure=True, name="step", model=model, fingerprint=None, state_interval_rounds=0) as run:
        optimizer = distro_train.Optimizer(run, adamw)
        samples = torch.randint(config["vocab_size"], (SAMPLES * 1000, SEQUENCE + 1))
        for text in run.batches(samples, torch.stack):
            loss = loss_of(model, text)
            loss.backward()
            steps += begin is not None
            if optimizer.step(loss):
                end = readings()
                begin = begin or end  # the first round warms up
        process, program, kernels = ((last - first) / steps for first, last in zip(begin, end))
        return {"step": process, "ours": process - program, "kernels": kernels, "parameters": run.summary()["parameters"]}


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
