#!/usr/bin/env python3
"""The operations of the published DeMo optimizer in PyTorch against kernels_benchmark: same sizes, same run, one thread each.

    python3 -m venv .deps/bench-python && .deps/bench-python/bin/pip install torch==2.11.0 numpy
    .deps/bench-python/bin/python bench/reference_ratio.py --benchmark build/release/bench/kernels_benchmark

Prints, for each operation, parameters a second of PyTorch and of every backend of this CPU, and their ratio. The two are
measured in turn, --rounds times, and the best of each counts, so that what else the machine does weighs least.
"""
import argparse
import json
import math
import subprocess
import time

import torch

SIDE = 2048      # as in kernels_benchmark.cc
CHUNK = 64
DECAY, LR, WEIGHT_DECAY = 0.999, 4e-4, 0.1


def dct_basis():
    """[frequency, sample], orthonormal DCT-II."""
    k = torch.arange(CHUNK, dtype=torch.float64)[:, None]
    n = torch.arange(CHUNK, dtype=torch.float64)[None, :]
    basis = math.sqrt(2 / CHUNK) * torch.cos(math.pi * (2 * n + 1) * k / (2 * CHUNK))
    basis[0] /= math.sqrt(2)
    return basis.float()


BASIS = dct_basis()


def encode(x):
    """[SIDE, SIDE] -> coefficients [y, x, 64, 64]."""
    blocks = x.view(SIDE // CHUNK, CHUNK, SIDE // CHUNK, CHUNK).permute(0, 2, 1, 3)
    rows = torch.einsum("yxij,bj->yxib", blocks, BASIS)
    return torch.einsum("yxib,ai->yxab", rows, BASIS)


def decode(coefficients):
    rows = torch.einsum("yxab,bj->yxaj", coefficients, BASIS)
    blocks = torch.einsum("yxaj,ai->yxij", rows, BASIS)
    return blocks.permute(0, 2, 1, 3).reshape(SIDE, SIDE)


def sparse_to_dense(index, value, reduce):
    flat = torch.zeros(index.shape[0], index.shape[1], CHUNK * CHUNK)
    if reduce:
        flat.scatter_reduce_(-1, index, value, reduce="mean", include_self=False)
    else:
        flat.scatter_(-1, index, value)
    return flat.view(*index.shape[:2], CHUNK, CHUNK)


def make_compress(k):
    gradient, delta = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)

    def run():
        delta.mul_(DECAY).add_(gradient, alpha=LR)
        flat = encode(delta).flatten(2)
        index = torch.topk(flat.abs(), k, dim=-1, sorted=False).indices
        return index, torch.gather(flat, -1, index)
    return run


def make_feedback(k):
    delta = torch.randn(SIDE, SIDE)
    grid = SIDE // CHUNK
    index = torch.rand(grid, grid, CHUNK * CHUNK).topk(k, dim=-1).indices
    value = torch.randn(grid, grid, k)
    return lambda: delta.sub_(decode(sparse_to_dense(index, value, reduce=False)))


def make_apply(entries):
    parameters = torch.randn(SIDE, SIDE)
    grid = SIDE // CHUNK
    index = torch.randint(CHUNK * CHUNK, (grid, grid, entries))
    value = torch.randn(grid, grid, entries)

    def run():
        parameters.mul_(1 - LR * WEIGHT_DECAY)
        direction = decode(sparse_to_dense(index, value, reduce=True)).sign_()
        parameters.add_(direction, alpha=-LR)
    return run


# Name and argument in kernels_benchmark -> the operation in PyTorch.
CASES = {
    "Compress k:4": (lambda: make_compress(4)),
    "Compress k:32": (lambda: make_compress(32)),
    "Feedback k:4": (lambda: make_feedback(4)),
    "Apply votes:128": (lambda: make_apply(128)),
}


def torch_rate(operation, seconds):
    operation()
    count, begin = 0, time.process_time()
    while time.process_time() - begin < seconds or count == 0:
        operation()
        count += 1
    return count * SIDE * SIDE / (time.process_time() - begin)


def kernel_rates(binary, case, seconds):
    name, argument = case.split()
    command = [binary, f"--benchmark_filter=^{name}/(vector|avx).*/{argument}$", f"--benchmark_min_time={seconds}",
               "--benchmark_format=json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {row["name"].split("/")[1]: row["items_per_second"] for row in report["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", required=True, help="path of kernels_benchmark")
    parser.add_argument("--seconds", type=float, default=0.5, help="CPU time of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    print("| operation | PyTorch, M parameters/s | implementation | M parameters/s | to PyTorch |\n|---|---|---|---|---|", flush=True)
    for case, make in CASES.items():
        operation, reference, ours = make(), 0.0, {}
        for _ in range(options.rounds):
            reference = max(reference, torch_rate(operation, options.seconds))
            for backend, rate in kernel_rates(options.benchmark, case, options.seconds).items():
                ours[backend] = max(ours.get(backend, 0.0), rate)
        for backend, rate in ours.items():
            print(f"| {case} | {reference / 1e6:.0f} | {backend} | {rate / 1e6:.0f} | {rate / reference:.1f} |", flush=True)


if __name__ == "__main__":
    main()
