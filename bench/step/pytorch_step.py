#!/usr/bin/env python3
"""Training steps of a Llama in plain PyTorch on the processor: forward, backward, clipping, fused AdamW. step.py calls it;
module_program.py takes the same step.

    pytorch_step.py CONFIG.json --samples 8 --sequence 128 --threads 2 --steps 40 [--compile]

Prints a line of JSON: tokens_per_second, of the median step.
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
from step import WARM_UPS  # noqa: E402


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=True)


def loss_of(forward, text):
    """Of the text's tokens but the first, by those before them."""
    return forward(text[:, :-1], text[:, 1:].contiguous())


def train_step(forward, model, optimizer, text):
    """`forward`: the model, or what it was compiled to."""
    loss_of(forward, text).backward()
    take_step(model, optimizer)


def take_step(model, optimizer):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=pathlib.Path)
    for number in ("samples", "sequence", "threads", "steps"):
        parser.add_argument(f"--{number}", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = json.loads(options.config.read_text())
    model = Llama(config, "cpu", torch.float32)
    forward = torch.compile(model) if options.compile else model
    optimizer = adamw(model.parameters())
    seconds = []
    for _ in range(WARM_UPS + options.steps):
        text = torch.randint(config["vocab_size"], (options.samples, options.sequence + 1))
        begin = time.monotonic()
        train_step(forward, model, optimizer, text)
        seconds.append(time.monotonic() - begin)
    print(json.dumps({"tokens_per_second": options.samples * options.sequence / statistics.median(seconds[WARM_UPS:])}))


if __name__ == "__main__":
    main()
