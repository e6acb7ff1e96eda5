"""Two processes that divide a module by tensor and sequence parallelism; ends with 0 if rank 0 gathers the values and gradients
of the whole module, and if all get what it scatters.

    torchrun --standalone --nproc_per_node 2 parts.py             rank 1 sees the memory of rank 0
    torchrun --standalone --nproc_per_node 2 parts.py --apart     it does not, as on another machine
    torchrun --standalone --nproc_per_node 2 parts.py --refused   the kernel gives no memory that can be shared
"""
import os
import sys

import torch
from distro_train import _shared_memory
from distro_train._ranks import Ranks
from distro_train._sharded import Sharded
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, SequenceParallel, parallelize_module


def main():
    torch.distributed.init_process_group("gloo")
    if "--apart" in sys.argv:
        _shared_memory._mapped = lambda *_: None
    if "--refused" in sys.argv:
        _shared_memory._created = lambda *_: -1
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(1)
    whole = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 6))
    parts = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 6))
    parts.load_state_dict(whole.state_dict())
    samples = torch.randn(2, 4, 8)
    whole(samples).pow(2).sum().backward()
    # The gradient of the norm is in summands, one of each half of the sequence.
    parallelize_module(parts, mesh["tp"], {"0": SequenceParallel(), "1": ColwiseParallel(input_layouts=Shard(1))})
    ranks = Ranks(alone=False, data_mesh=mesh["dp"])
    sharded = Sharded(parts, dict(parts.named_parameters()), ranks)
    assert bool(sharded._near_parts) == (ranks.rank == 0 or len(sys.argv) == 1), "who sees the memory of rank 0"
    half = samples.chunk(2, dim=1)[torch.distributed.get_rank()]
    parts(half).pow(2).sum().backward()  # of this process's columns

    sharded.gather()
    sharded.gather_gradients()
    for name, held in sharded.wholes.items():
        expected = whole.get_parameter(name)
        assert torch.equal(held, expected), name
        torch.testing.assert_close(held.grad, expected.grad, msg=name)
        held.data += 1
    ranks.barrier()
    sharded.scatter()
    sharded.gather()
    for name, held in sharded.wholes.items():
        assert torch.equal(held, whole.get_parameter(name) + 1), name
    torch.distributed.barrier()
    os._exit(0)  # a thread of gloo that lets go of its last tensor while the interpreter ends would abort


if __name__ == "__main__":
    main()
