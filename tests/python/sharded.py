"""Several processes as one worker, whose module lies in parts in them: by FSDP2 alone, or beside tensor parallelism. Each prints a line a
step, and a hash of the run's parameters after every round."""
import contextlib
import json
import pathlib

import distro_train
import torch
from llama import Llama, freeze
from ranks import bits, flags_of_a_rank, run_to_its_end
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from train import Text, sgd, training_samples

IN_LAYER = {f"{part}.{name}_proj": style() for part, names, style in (
    ("self_attn", "qkv", ColwiseParallel), ("self_attn", "o", RowwiseParallel),
    ("mlp", ("gate", "up"), ColwiseParallel), ("mlp", ("down",), RowwiseParallel)) for name in names}


def shard(model, mesh):
    """Over the mesh's dimension dp by FSDP2, and over tp, if it has one, by columns and rows; or replicated and sharded (HSDP)."""
    data = mesh["dp"] if "dp" in mesh.mesh_dim_names else mesh
    for layer in model.model.layers:
        if "tp" in mesh.mesh_dim_names:
            parallelize_module(layer, mesh["tp"], IN_LAYER)
            layer.self_attn.heads //= mesh["tp"].size()
            layer.self_attn.kv_heads //= mesh["tp"].size()
        fully_shard(layer, mesh=data)
    fully_shard(model, mesh=data)
    return model


def mesh_of(args):
    if args.replicas > 1:
        return init_device_mesh(args.device, (args.replicas, args.dp // args.replicas), mesh_dim_names=("replicate", "shard"))
    shape = (args.dp, args.tp) if args.tp > 1 else (args.dp,)
    return init_device_mesh(args.device, shape, mesh_dim_names=("dp", "tp")[:len(shape)])


def main():
    parser = flags_of_a_rank()
    parser.add_argument("--dp", type=int, required=True)
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=1, help="of the whole module, each of which is sharded")
    parser.add_argument("--device", default="cpu", help="one process has the GPU: --dp 1")
    parser.add_argument("--save")
    parser.add_argument("--signs", action="store_true")
    parser.add_argument("--own", action="store_true", help="the run's own inner optimizer")
    parser.add_argument("--sgd", action="store_true")
    parser.add_argument("--batch_size", type=int)
    parser.add_argument("--bare", action="store_true", help="without closing the run")
    parser.add_argument("--frozen", type=int, help="train only a part of the Llama, whose buffers have this value")
    parser.add_argument("--no_data_mesh", action="store_true", help="as if all processes read different samples")
    parser.add_argument("--die_at", type=int, default=-1, help="step in which this process ends with an error")
    parser.add_argument("--stop_at", type=int, default=-1, help="round after which all processes leave")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.rank)  # modules begin differently
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if args.device == "cuda" else "gloo", init_method=f"file://{args.store}", rank=args.rank, world_size=args.dp * args.tp)
    mesh = mesh_of(args)
    whole = Llama(json.loads(pathlib.Path(args.config).read_text())).to(args.device)
    model = shard(whole if args.frozen is None else freeze(whole, args.frozen), mesh)
    text = Text(args.text, 16)
    hashes, steps = [], 0
    run = distro_train.connect(args.aggregator, insecure=True, name=args.name, model=model, state_dir=args.state_dir,
                               data_mesh=None if args.no_data_mesh or args.replicas > 1 else mesh["dp"], fingerprint=distro_train.fingerprint_of_tokens(args.text))
    with contextlib.nullcontext() if args.bare else run:
        optimizer = distro_train.Optimizer(run, None if args.signs or args.own else sgd if args.sgd else
                                           lambda parameters: torch.optim.AdamW(parameters, lr=0.01))
        moments = sum(len(one["state"]) for one in optimizer.state_dict().get("parts", []))  # of tensors, restored
        hashes.append(bits(model))
        for batch in run.batches(text, torch.stack, args.batch_size, held_out_loss=lambda batch: model(batch.to(args.device))):
            loss = model(batch.to(args.device))
            loss.backward()
            if steps == args.die_at:
                raise MemoryError("as planned")
            if optimizer.step(loss):
                hashes.append(bits(model))
            steps += 1
            print(f"step loss={loss.item():.4f} samples={len(batch)}", flush=True)
            if len(hashes) - 1 == args.stop_at:
                break
        if args.save:
            run.save(args.save)
            torch.distributed.barrier()
            from safetensors.torch import load_file
            saved = load_file(f"{args.save}/model.safetensors")
            for name, value in run.named_parameters.items():
                assert torch.equal(saved[name], value.full_tensor().cpu()), name
        readings = {**run.summary(), "hashes": hashes, "done": run.done, "moments": moments,
                    "given": [index for index in text.given if index < training_samples(text, run.config)]}
    pathlib.Path(args.summary).write_text(json.dumps(readings))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run_to_its_end(main)
