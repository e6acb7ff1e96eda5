#!/usr/bin/env python3
"""The reference of first_day's tables, in PyTorch on the same card: our own short version of the operations that the published
DeMo optimizer does, and a Llama of the same layout.

    reference.py operations CONFIG.json [--kept 4] [--votes 128]
    reference.py training CONFIG.json --batch 8 --sequence 2048 [--compile]

Prints lines of JSON as gpu_kernels and gpu_training do. Exit status 3: PyTorch sees no GPU.
"""
import argparse
import json
import math
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pytorch_llama import Llama, matrices  # noqa: E402

CHUNK, DECAY, LR, WEIGHT_DECAY = 64, 0.999, 4e-4, 0.1
WARM_UPS, REPETITIONS = 2, 5


def timed(operation):
    """Milliseconds of each repetition."""
    times = []
    for i in range(WARM_UPS + REPETITIONS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        operation()
        end.record()
        end.synchronize()
        if i >= WARM_UPS:
            times.append(begin.elapsed_time(end))
    return times


def report(name, parameters, times):
    print(json.dumps({"name": name, "parameters": parameters, "median_ms": statistics.median(times), "least_ms": min(times)}),
          flush=True)


def dct_basis():
    k = torch.arange(CHUNK, dtype=torch.float64)[:, None]
    n = torch.arange(CHUNK, dtype=torch.float64)[None, :]
    basis = math.sqrt(2 / CHUNK) * torch.cos(math.pi * (2 * n + 1) * k / (2 * CHUNK))
    basis[0] /= math.sqrt(2)
    return basis.float().cuda()


def encode(x, basis):
    """[rows, cols] -> coefficients [y, x, 4096]."""
    blocks = x.view(x.shape[0] // CHUNK, CHUNK, x.shape[1] // CHUNK, CHUNK).permute(0, 2, 1, 3)
    rows = torch.einsum("yxij,bj->yxib", blocks, basis)
    return torch.einsum("yxib,ai->yxab", rows, basis).flatten(2)


def decode(flat, basis, shape):
    coefficients = flat.view(*flat.shape[:2], CHUNK, CHUNK)
    rows = torch.einsum("yxab,bj->yxaj", coefficients, basis)
    return torch.einsum("yxaj,ai->yxij", rows, basis).permute(0, 2, 1, 3).reshape(shape)


def operations(config, kept, votes):
    basis = dct_basis()
    shapes = [shape for shape in matrices(config) if shape[0] % CHUNK == 0 and shape[1] % CHUNK == 0]
    total = sum(rows * cols for rows, cols in shapes)
    deltas = [torch.randn(shape, device="cuda") for shape in shapes]
    others = [torch.randn(shape, device="cuda") for shape in shapes]  # gradients, then parameters
    sent = [None] * len(shapes)

    def compress():
        for i, (delta, gradient) in enumerate(zip(deltas, others)):
            delta.mul_(DECAY).add_(gradient, alpha=LR)
            flat = encode(delta, basis)
            index = torch.topk(flat.abs(), kept, dim=-1, sorted=False).indices
            sent[i] = index, torch.gather(flat, -1, index)

    def feedback():
        for delta, (index, value) in zip(deltas, sent):
            flat = torch.zeros(*index.shape[:2], CHUNK * CHUNK, device="cuda").scatter_(-1, index, value)
            delta.sub_(decode(flat, basis, delta.shape))

    received = []
    for rows, cols in shapes:
        grid = (rows // CHUNK, cols // CHUNK)
        received.append((torch.randint(CHUNK * CHUNK, (*grid, votes), device="cuda"), torch.randn(*grid, votes, device="cuda")))

    def apply():
        for parameters, (index, value) in zip(others, received):
            flat = torch.zeros(*index.shape[:2], CHUNK * CHUNK, device="cuda")
            flat.scatter_reduce_(-1, index, value, reduce="mean", include_self=False)
            parameters.mul_(1 - LR * WEIGHT_DECAY)
            parameters.add_(decode(flat, basis, parameters.shape).sign_(), alpha=-LR)

    report(f"compress k={kept}", total, timed(compress))
    report(f"feedback k={kept}", total, timed(feedback))
    report(f"apply {votes} votes", total, timed(apply))


def training(config, batch, sequence, compiled):
    model = Llama(config, "cuda", torch.bfloat16)
    forward = torch.compile(model) if compiled else model
    tokens = torch.randint(config["vocab_size"], (batch, sequence), device="cuda")

    def step():
        model.zero_grad(set_to_none=True)
        forward(tokens, tokens.roll(-1, 1)).backward()

    begin = time.monotonic()
    step()
    torch.cuda.synchronize()
    first = time.monotonic() - begin
    times = timed(step)
    print(json.dumps({"name": "torch.compile" if compiled else "eager", "tokens_per_second": batch * sequence * 1000 / statistics.median(times),
                      "median_ms": statistics.median(times), "first_step_seconds": first,
                      "peak_bytes": torch.cuda.max_memory_allocated()}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("operations", "training"))
    parser.add_argument("config")
    parser.add_argument("--kept", type=int, default=4)
    parser.add_argument("--votes", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=2048)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("reference: PyTorch sees no GPU", file=sys.stderr)
        return 3
    with open(options.config) as file:
        config = json.load(file)
    if options.what == "operations":
        operations(config, options.kept, options.votes)
    else:
        training(config, options.batch, options.sequence, options.compile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
