"""Trains the GPT of nanogpt.py as one worker of several processes, each of which has a part of every tensor (FSDP2),
also beside tensor parallelism. On GPUs each process has one.

    python nanogpt.py init --out initial ...                                               # once, as there
    torchrun --nproc_per_node 8 sharded.py --invite w1.invite --model initial --data input.txt
    torchrun --nproc_per_node 8 sharded.py ... --tensor_parallel 2                         # 4 x 2
"""
import argparse
import json
import os
import pathlib

import distro_train
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from nanogpt import GPT, Tokens


def sharded(model, mesh):
    """The feed-forward layers by columns and rows over the mesh's dimension tp; what that leaves, over dp."""
    for block in model.blocks:
        if mesh["tp"].size() > 1:
            parallelize_module(block.feed, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("invite", "aggregator", "name", "state_dir", "model", "data"):
        parser.add_argument(f"--{flag}", help="as for nanogpt.py")
    parser.add_argument("--insecure", action="store_true", help="as for nanogpt.py")
    parser.add_argument("--tensor_parallel", type=int, default=1, help="processes that share a part of the samples")
    parser.add_argument("--out", default="trained", help="folder for the parameters at the end (default trained)")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group()
    shape = (torch.distributed.get_world_size() // args.tensor_parallel, args.tensor_parallel)
    mesh = init_device_mesh(device, shape, mesh_dim_names=("dp", "tp"))
    config = json.loads(pathlib.Path(args.model, "config.json").read_text())
    model = GPT(**{key: config[key] for key in ("vocabulary", "positions", "width", "heads", "layers")}).to(device)
    with distro_train.connect(args.aggregator, invite=args.invite, insecure=args.insecure, name=args.name,
                              state_dir=args.state_dir, model=sharded(model, mesh), data_mesh=mesh["dp"],
                              fingerprint=distro_train.fingerprint_of_tokens(args.data)) as run:
        optimizer = distro_train.Optimizer(run)
        data = Tokens(pathlib.Path(args.data), run.config["sequence_length"])
        first = torch.distributed.get_rank() == 0
        for batch in run.batches(data, torch.stack, held_out_loss=lambda batch: model(batch.to(device))):
            loss = model(batch.to(device))
            loss.backward()
            if optimizer.step(loss) and first:
                print(f"round: loss {loss.item():.4f}", flush=True)
        run.save(args.out)
        if first:
            print(f"done: state {run.summary()['state_hash']}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
