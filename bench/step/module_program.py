#!/usr/bin/env python3
"""Training steps of a Llama in PyTorch, plain or as a worker of a run; module_step.py calls it.

    module_program.py CONFIG.json --threads 2 --steps 60                        plain
    module_program.py CONFIG.json --initial FOLDER                              what a run of it is created from
    module_program.py CONFIG.json --threads 2 --aggregator HOST:PORT            as a worker, alone, until the run is done
    torchrun --nproc_per_node 4 module_program.py CONFIG.json ...               the same in four processes, with FSDP2

Prints a line of JSON, in seconds of processor time of all threads and processes: `step` of a step, and of that `rest`, from the end of
backward to the next forward; as a worker also `kernels`, the time, not processor time, of the phases compress and apply in all steps.
"""
import argparse
import json
import os
import pathlib
import sys
import time

import torch
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pytorch_llama import Llama  # noqa: E402
from pytorch_step import adamw, loss_of, take_step  # noqa: E402
from step import SAMPLES, SEQUENCE, WARM_UPS  # noqa: E402

OUTSIDE = ("weights.0", "weights.1")  # embedding and head
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


class Clock:
    """Of steps but the first few, in which a process also fetches its memory, threads and libraries."""

    def __init__(self):
        self.steps = self.rest = 0
        self.begin = self.rest_begin = None

    def before_forward(self):
        if self.rest_begin is not None:
            self.rest += time.process_time() - self.rest_begin
        if self.steps == WARM_UPS:
            self.begin, self.rest = time.process_time(), 0

    def after_backward(self):
        self.rest_begin = time.process_time()
        self.steps += 1

    def readings(self):
        """Of all processes; before the forward of a step that is not made."""
        self.before_forward()
        seconds = torch.tensor([time.process_time() - self.begin, self.rest], dtype=torch.float64)
        if RANKS > 1:
            torch.distributed.all_reduce(seconds)
        return dict(zip(("step", "rest"), (seconds / (self.steps - WARM_UPS)).tolist()))


def plain(model, config, steps):
    optimizer, clock = adamw(model.parameters()), Clock()
    for _ in range(WARM_UPS + steps):
        text = torch.randint(config["vocab_size"], (SAMPLES // RANKS, SEQUENCE + 1))
        clock.before_forward()
        loss_of(model, text).backward()
        clock.after_backward()
        take_step(model, optimizer)
    return clock.readings()


def as_worker(model, config, aggregator):
    import distro_train
    clock = Clock()
    with distro_train.connect(aggregator, insecure=True, name="step", model=model, fingerprint=None, state_interval_rounds=0) as run:
        optimizer = distro_train.Optimizer(run, adamw)
        samples = torch.randint(config["vocab_size"], (SAMPLES * 1000, SEQUENCE + 1))
        for text in run.batches(samples, torch.stack):
            clock.before_forward()
            loss = loss_of(model, text)
            loss.backward()
            clock.after_backward()
            optimizer.step(loss)
        readings, summary = clock.readings(), run.summary() or {}  # processes without rank 0's have none
        kernels = sum(summary.get("phase_seconds", {}).get(phase, 0) for phase in ("compress", "apply"))
        return readings | {"kernels": kernels / clock.steps, "parameters": summary.get("parameters")}


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
    if RANKS > 1:
        torch.distributed.init_process_group("gloo")
        model = fully_shard(model)
    if options.initial:
        import distro_train
        distro_train.save_initial(model, options.initial, outside=OUTSIDE)
        print("{}")
        return
    measured = as_worker(model, config, options.aggregator) if options.aggregator else plain(model, config, options.steps)
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(measured), flush=True)
    if RANKS > 1:
        torch.distributed.barrier()
        os._exit(0)  # a thread of gloo that lets go of its last tensor while the interpreter ends would abort


if __name__ == "__main__":
    main()
