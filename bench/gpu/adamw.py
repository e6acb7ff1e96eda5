#!/usr/bin/env python3
"""The baseline of learning.py: the same model, text, held-out samples, batch, warm-up and clipping with AdamW in PyTorch, one
process, the gradient of all samples.

    adamw.py --config examples/llama_125m/config.json --text FILE --tokens 8000000

Prints lines of JSON as learning.py does. Bytes are those of a ring All-Reduce of gradients in bf16 among as many workers. It ends
with that many tokens or seconds; 0: no limit.
"""
import argparse
import json
import math
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import learning  # noqa: E402
from pytorch_llama import Llama  # noqa: E402

RATE, BETAS, WEIGHT_DECAY, CLIP = 6e-4, (0.9, 0.95), 0.1, 1.0


class Text:
    """Samples of sequence + 1 bytes, cut and divided as worker/data/sampler.h says; training samples in a random order."""

    def __init__(self, path, sequence, device):
        self.bytes = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).to(device)
        self.sequence = sequence
        samples = (len(self.bytes) - 1) // sequence
        self.training = samples - math.ceil(learning.HELD_OUT * samples)
        self.held_out = range(self.training, min(samples, self.training + learning.EVALUATED))
        self.random = torch.Generator().manual_seed(1)

    def read(self, samples):
        at = torch.as_tensor(samples)[:, None] * self.sequence + torch.arange(self.sequence + 1)
        return self.bytes[at.to(self.bytes.device)].long()

    def next(self, count):
        return self.read(torch.randint(self.training, (count,), generator=self.random))


def loss_of(model, batch):
    return model(batch[:, :-1], batch[:, 1:])


def evaluate(model, text, samples):
    with torch.no_grad():
        batches = [text.read(part) for part in torch.tensor(text.held_out).split(samples)]
        return sum(loss_of(model, batch).item() * len(batch) for batch in batches) / len(text.held_out)


def train(model, text, options):
    """Prints the curve."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True)
    parameters = sum(weight.numel() for weight in model.parameters())
    samples = options.samples * learning.WORKERS
    begin, step, tokens = time.monotonic(), 0, 0
    while not (options.tokens and tokens >= options.tokens) and not (options.seconds and time.monotonic() > begin + options.seconds):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / learning.WARM_UP)
        loss_of(model, text.next(samples)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step, tokens = step + 1, tokens + samples * options.sequence
        if step % learning.INTERVAL == 0:
            sent = step * 2 * (learning.WORKERS - 1) * 2 * parameters // learning.WORKERS
            print(json.dumps({"name": "adamw", "step": step, "held_out_loss": evaluate(model, text, options.samples),
                              "seconds": round(time.monotonic() - begin, 2), "tokens": tokens, "sent_bytes": sent, "received_bytes": sent}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=8, help="of a worker, a step")
    parser.add_argument("--sequence", type=int, default=512)
    options = parser.parse_args()
    if not options.tokens and not options.seconds:
        parser.error("--tokens or --seconds: one of them has to end it")
    torch.manual_seed(1)
    model = Llama(json.loads(options.config.read_text()), options.device, torch.bfloat16 if options.device == "cuda" else torch.float32)
    train(model, Text(options.text, options.sequence, options.device), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
