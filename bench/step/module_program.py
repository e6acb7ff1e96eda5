#!/usr/bin/env python3
"""Training steps of a Llama in PyTorch, plain or as a worker of a run; module_step.py calls it.

    module_program.py CONFIG.json --threads 2 --steps 60                        plain
    module_program.py CONFIG.json --initial FOLDER                              what a run of it is created from
    module_program.py CONFIG.json --threads 2 --aggregator HOST:PORT            as a worker, alone, until the run is done
    torchrun --nproc_per_node 4 module_program.py CONFIG.json ...               the same in four processes, with FSDP2

Prints a line of JSON, in seconds of processor time: `step` of a step, all threads and processes together; as a worker also `ours`, what
of it other threads of a process than the program's take: gradient norm, clipping, compress, apply, and sending and receiving; and of
these `kernels`, the time, not processor time, of the phases compress and apply.
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
from pytorch_step import adamw, loss_of, train_step  # noqa: E402
from step import SAMPLES, SEQUENCE, WARM_UPS  # noqa: E402

OUTSIDE = ("weights.0", "weights.1")  # embedding and head
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def processor_seconds():
    """Of all processes, up to a step that all have made."""
    seconds = torch.tensor([time.process_time()], dtype=torch.float64)
    if RANKS > 1:
        torch.distributed.all_reduce(seconds)
    return seconds.item()


def plain(model, config, steps):
    optimizer = adamw(model.parameters())
    for step in range(WARM_UPS + steps):
        if step == WARM_UPS:
            begin = processor_seconds()
        train_step(model, model, optimizer, torch.randint(config["vocab_size"], (SAMPLES // RANKS, SEQUENCE + 1)))
    return {"step": (processor_seconds() - begin) / steps}


def as_worker(model, config, aggregator):
    import distro_train
    def readings():
        phases = (run.summary() or {}).get("phase_seconds", {"compress": 0, "apply": 0})  # others than rank 0 have none
        return processor_seconds(), time.thread_time(), phases["compress"] + phases["apply"]

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
        parameters = (run.summary() or {}).get("parameters")
        return {"step": process, "ours": process - program, "kernels": kernels, "parameters": parameters}


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
