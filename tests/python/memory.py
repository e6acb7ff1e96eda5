"""A module of 48 layers of a million parameters, in parts in the processes of torchrun by FSDP2. Each writes the most memory that a step of the
run takes beside the program's own, and what the run says of its parameters.

    memory.py --initial FOLDER                       what a run of it is created from
    torchrun memory.py --aggregator HOST:PORT --out FOLDER
"""
import argparse
import ctypes
import dataclasses
import json
import pathlib

import distro_train
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

SIZE, LAYERS = 1024, 48


def status(name):
    """A line of /proc/self/status, in bytes."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def forget_freed():
    """Returns what was freed to the system; VmHWM is the most from now on."""
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--initial")
    parser.add_argument("--aggregator")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    module = nn.Sequential(*(nn.Linear(SIZE, SIZE, bias=False) for _ in range(LAYERS)))
    if args.initial:
        distro_train.save_initial(module, args.initial)
        return
    torch.distributed.init_process_group("gloo")
    for layer in module:
        fully_shard(layer)
    model = fully_shard(module)

    def step(batch):
        loss = model(batch).pow(2).mean()
        loss.backward()
        return loss

    own = torch.optim.SGD(model.parameters(), lr=0.01)
    before = most = 0
    for _ in range(3):
        step(torch.randn(2, SIZE))
        forget_freed()
        before = max(before, status("VmRSS"))  # of the program without a run, with gradients
        own.step()
        own.zero_grad()
    with distro_train.connect(args.aggregator, insecure=True, name="memory", model=model, fingerprint=None) as run:
        optimizer = distro_train.Optimizer(run, lambda parameters: torch.optim.SGD(parameters, lr=0.01))
        for batch in run.batches(torch.randn(64, SIZE), torch.stack):
            loss = step(batch)
            forget_freed()
            optimizer.step(loss)
            most = max(most, status("VmHWM"))
        held = [dataclasses.asdict(one) for one in run.parameters.values()]
    said = sum(one[f"{part}_bytes"] for one in held for part in ("host", "replica", "rule"))
    rank = torch.distributed.get_rank()
    (args.out / f"memory-{rank}.json").write_text(json.dumps({"most": most - before, "said": said, "shared": status("RssShmem")}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
