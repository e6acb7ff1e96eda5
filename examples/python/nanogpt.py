"""Trains a small GPT in a run of DisTrO: a plain PyTorch module, defined in this file and unknown to DisTrO.

    python nanogpt.py init --out initial --layers 6 --width 384      # once: the model's size and first parameters
    distroctl run create HOST:7700 --run run.json --model initial    # once: the run ("workers": "python" in run.json)
    distroctl invite w1 --aggregator HOST:7700 ...                   # once for each machine: w1.invite
    python nanogpt.py train --invite w1.invite --model initial --data input.txt    # there

`run.json` has the settings common to all workers: rounds, learning rates, samples of a step, `sequence_length`. The
flags of `train` are a worker's own: they change how it computes a gradient, and no other worker notices.
"""
import argparse
import json
import logging
import pathlib

import distro_train
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a normalization and added to what came in."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):  # [batch, positions, width]
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.attention(self.attention_norm(x)).chunk(3, dim=-1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # [batch, heads, positions, size]
        x = x + self.projection(mixed.transpose(1, 2).flatten(-2))
        return x + self.feed(self.feed_norm(x))


class GPT(nn.Module):
    """Predicts each token from those before it. The head is the embedding: one tensor, trained and sent once."""

    def __init__(self, vocabulary, positions, width, heads, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.recompute = False
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                last = name.endswith(("projection.weight", "feed.2.weight"))  # what each layer adds to the sum
                nn.init.normal_(parameter, std=0.02 / (2 * layers) ** 0.5 if last else 0.02)

    def forward(self, samples):
        """samples i64 [batch, positions + 1]; the mean loss, nats a token."""
        inputs, targets = samples[:, :-1], samples[:, 1:]
        x = self.tokens(inputs) + self.positions.weight[:inputs.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return functional.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())


class Tokens:
    """A map-style data set: sample i is the length + 1 tokens from i * length on, as distro-worker reads them."""

    def __init__(self, path, length):
        if path.suffix in (".txt", ".md"):  # a token is a byte
            self.tokens = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
        elif path.suffix == ".u16":  # as distro-data writes them, and nanoGPT, whose .bin is to be renamed
            size = path.stat().st_size // 2
            self.tokens = torch.from_file(str(path), size=size, dtype=torch.uint16)  # mapped, not loaded
        else:
            raise SystemExit(f"--data {path}: wants a text (.txt, .md) or 16-bit tokens (.u16)")
        self.length = length

    def __len__(self):
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, index):
        return self.tokens[index * self.length:(index + 1) * self.length + 1].long()


def init(args):
    torch.manual_seed(args.seed)
    size = {key: getattr(args, key) for key in ("vocabulary", "positions", "width", "heads", "layers")}
    model = GPT(**size)
    distro_train.save_initial(model, args.out, config=size)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters in {args.out}")


def train(args):
    config = json.loads((args.model / "config.json").read_text())
    model = GPT(**{key: config[key] for key in ("vocabulary", "positions", "width", "heads", "layers")})
    model.recompute = args.recompute
    forward = torch.compile(model) if args.compile else model  # the run is given the module itself
    with distro_train.connect(args.aggregator, invite=args.invite, insecure=args.insecure, name=args.name, model=model,
                              state_dir=args.state_dir,
                              fingerprint=distro_train.fingerprint_of_tokens(str(args.data))) as run:
        optimizer = distro_train.Optimizer(run)
        data = Tokens(args.data, run.config["sequence_length"])
        rounds = 0
        for batch in run.batches(data, torch.stack, args.batch_size, held_out_loss=model):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.autocast):
                loss = forward(batch)
            loss.backward()
            if optimizer.step(loss):  # True: a round ended, and the module is the run's parameters again
                rounds += 1
                print(f"round {rounds}: loss {loss.item():.4f}", flush=True)
        run.save(args.out)
        print(f"done: state {run.summary()['state_hash']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    make = commands.add_parser("init", help="write the model that the run begins with")
    make.set_defaults(command=init)
    make.add_argument("--out", required=True, help="folder to write")
    for name, default, what in (("vocabulary", 256, "256 for text, whose tokens are bytes; 50257 for GPT-2's tokens"),
                                ("positions", 256, "the longest sample; sequence_length of run.json is at most this"),
                                ("width", 384, "of the vectors between the layers"), ("heads", 6, "divide the width"),
                                ("layers", 6, ""), ("seed", 1, "of the first parameters")):
        make.add_argument(f"--{name}", type=int, default=default, help=f"{what} (default {default})")

    work = commands.add_parser("train", help="train in the run until it is over")
    work.set_defaults(command=train)
    work.add_argument("--invite", help="this worker's file: it says where the aggregator is and proves who this is")
    work.add_argument("--aggregator", metavar="HOST:PORT", help="in the place of the invite's")
    work.add_argument("--model", required=True, type=pathlib.Path, help="the folder of init: says the model's size")
    work.add_argument("--data", required=True, type=pathlib.Path, help="the same file on every worker: .txt or .u16")
    work.add_argument("--name", help="of this worker where there is no invite: one of its own in the run")
    work.add_argument("--out", default="trained", help="folder for the parameters at the end (default trained)")
    work.add_argument("--state_dir", help="folder of this worker, to go on after a crash with its momentum")
    work.add_argument("--insecure", action="store_true", help="no TLS, on one machine: with --aggregator and --name")
    work.add_argument("--batch_size", type=int, help="samples in memory at once; smaller ones are accumulated")
    work.add_argument("--autocast", action="store_true", help="compute in bf16; the parameters stay f32")
    work.add_argument("--recompute", action="store_true", help="gradient checkpointing: slower, less memory")
    work.add_argument("--compile", action="store_true", help="torch.compile; wants a C++ compiler")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    args.command(args)


if __name__ == "__main__":
    main()
