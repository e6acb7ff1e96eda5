"""A worker of two processes, the stages of a pipeline; prints a line a step, and a hash of its layers after every round."""
import json
import pathlib

import distro_train
import torch
from llama import Llama, freeze
from ranks import bits, flags_of_a_rank, run_to_its_end
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.nn import functional
from train import Text


class Stage(nn.Module):
    """Half of a Llama's layers, under the names of all."""

    def __init__(self, whole, index):
        super().__init__()
        half = len(whole.model.layers) // 2
        self.model = nn.Module()
        self.model.layers = nn.ModuleDict({str(i): whole.model.layers[i] for i in range(index * half, (index + 1) * half)})
        self.first = index == 0
        if self.first:
            self.model.embed_tokens = whole.model.embed_tokens
        else:
            self.model.norm, self.lm_head = whole.model.norm, whole.lm_head

    def forward(self, x):
        x = self.model.embed_tokens(x) if self.first else x
        for layer in self.model.layers.values():
            x = layer(x)
        return x if self.first else self.lm_head(self.model.norm(x))


def main():
    parser = flags_of_a_rank()
    parser.add_argument("--stop_at", type=int, default=-1, help="round after which both processes leave")
    parser.add_argument("--frozen", action="store_true", help="train only a part of the Llama")
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.rank)
    torch.distributed.init_process_group("gloo", init_method=f"file://{args.store}", rank=args.rank, world_size=2)
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "pp"))
    whole = Llama(json.loads(pathlib.Path(args.config).read_text()))
    model = Stage(freeze(whole) if args.frozen else whole, args.rank)
    schedule = ScheduleGPipe(PipelineStage(model, args.rank, 2, torch.device("cpu"), group=mesh["pp"].get_group()), 2,
                             loss_fn=lambda logits, targets: functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    text = Text(args.text, 16)
    hashes = []
    with distro_train.connect(args.aggregator, insecure=True, name=args.name, model=model, state_dir=args.state_dir,
                              data_mesh=mesh["dp"], fingerprint=text) as run:
        optimizer = distro_train.Optimizer(run)
        moments = sum(len(one["state"]) for one in optimizer.state_dict()["parts"])
        for batch in run.batches(text, torch.stack):
            losses = []
            if args.rank == 0:
                schedule.step(batch[:, :-1].contiguous())
            else:
                schedule.step(target=batch[:, 1:].contiguous(), losses=losses)
            if optimizer.step(torch.stack(losses).mean() if losses else None):
                hashes.append(bits(model))
            if len(hashes) == args.stop_at:
                break
        if args.save:
            run.save(args.save)
        readings = {**run.summary(), "hashes": hashes, "done": run.done, "given": text.given, "moments": moments}
    pathlib.Path(args.summary).write_text(json.dumps(readings))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run_to_its_end(main)
