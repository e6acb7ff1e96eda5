"""Two processes as one worker, by DistributedDataParallel over gloo: what a user's program is with several GPUs. Each prints a line a
step, and a hash of its parameters after every round."""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import sys

import distro_train
import torch
from llama import Llama
from train import Text, training_samples


def bits(model):
    """A hash of the parameters' bits, of whole tensors where the module has parts."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        digest.update(whole.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def flags_of_a_rank():
    """The parser that programs of several processes share."""
    parser = argparse.ArgumentParser()
    for flag in ("aggregator", "name", "text", "summary", "config", "store"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--state_dir")
    return parser


def run_to_its_end(main):
    """Runs a program, which ends with 5 where the run ends by an error."""
    try:
        main()
    except distro_train.Error as error:
        print(f"ended by {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(5)


def gloo_threads():
    """The number of threads of gloo's groups in this process."""
    names = []
    for name in pathlib.Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            names.append(name.read_text().strip())
    return names.count("pt_gloo_runloop")


def main():
    parser = flags_of_a_rank()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--signs", action="store_true")
    parser.add_argument("--alone", action="store_true", help="without DistributedDataParallel")
    parser.add_argument("--die_at", type=int, default=-1, help="step in which this process ends with an error")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.rank)  # modules begin differently
    torch.distributed.init_process_group("gloo", init_method=f"file://{args.store}", rank=args.rank, world_size=2)
    inner = Llama(json.loads(pathlib.Path(args.config).read_text())).to(getattr(torch, args.dtype))
    model = inner if args.alone else torch.nn.parallel.DistributedDataParallel(inner)
    text = Text(args.text, 16)
    hashes, steps, own_threads = [], 0, gloo_threads()
    with distro_train.connect(args.aggregator, insecure=True, name=args.name, model=model, state_dir=args.state_dir,
                              fingerprint=distro_train.fingerprint_of_tokens(args.text)) as run:
        optimizer = distro_train.Optimizer(run, None if args.signs else lambda parameters: torch.optim.AdamW(parameters, lr=0.01))
        hashes.append(bits(inner))
        for batch in run.batches(text, torch.stack, held_out_loss=model):
            loss = model(batch)
            loss.backward()
            if steps == args.die_at:
                raise MemoryError("as planned")
            if optimizer.step(loss):
                hashes.append(bits(inner))
            steps += 1
            print(f"step loss={loss.item():.4f} samples={len(batch)}", flush=True)
        readings = {**run.summary(), "hashes": hashes, "done": run.done,
                    "given": [index for index in text.given if index < training_samples(text, run.config)]}
    readings["threads_left"] = gloo_threads() - own_threads
    pathlib.Path(args.summary).write_text(json.dumps(readings))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run_to_its_end(main)
