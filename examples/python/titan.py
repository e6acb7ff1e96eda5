"""Trains a model of torchtitan (0.3) as a worker of a run. torchtitan finds this file by its name:

    python titan.py llama3_debugmodel                                     # once: the folder initial
    torchrun --nproc_per_node 8 -m torchtitan.train --module titan --config llama3_debugmodel \\
        --invite w1.invite --data train.u16 --training.local_batch_size 8 --parallelism.tensor_parallel_degree 2

Samples, inner optimizer, rates, clipping and the number of steps are the run's, and it keeps what a checkpoint would.
Model, parallelism, precision, compilation, recomputed activations and metrics are torchtitan's, but for the bias that
balances experts without a loss: it is no parameter, and stays zero.
"""
import dataclasses
import math
import pathlib
import sys
from types import SimpleNamespace

import distro_train
import torch
from torchtitan.models.deepseek_v3 import config_registry as deepseek_v3
from torchtitan.models.llama3 import config_registry as llama3
from torchtitan.trainer import Trainer

from nanogpt import Tokens


class Worker(Trainer):
    @dataclasses.dataclass(kw_only=True, slots=True)
    class Config(Trainer.Config):
        invite: str = ""
        data: str = ""

    def __init__(self, config):
        config.dataloader = config.tokenizer = SimpleNamespace(build=lambda **_: None)  # the run says which tokens
        super().__init__(config)
        mesh = self.parallel_dims.get_optional_mesh("batch", include_singleton_axes=True)
        self.readers, self.out = mesh.size(), pathlib.Path(config.dump_folder)
        self.run = distro_train.connect(invite=config.invite, model=self.model_parts[0], data_mesh=mesh,
                                        state_dir=str(self.out / "state"),
                                        fingerprint=distro_train.fingerprint_of_tokens(config.data))
        samples, size = self.run.config["samples_per_worker"], self.readers * config.training.local_batch_size
        if samples % size != 0:
            raise ValueError(f"--training.local_batch_size: {size} samples in all do not divide the run's {samples}")
        self.gradient_accumulation_steps = samples // size
        optimizer = distro_train.Optimizer(self.run)
        self.optimizers.step = lambda: optimizer.step(self.loss)

    def batch_generator(self, _):
        return super().batch_generator(self.batches())

    def batches(self):
        data = Tokens(pathlib.Path(self.config.data), self.run.config["sequence_length"])
        size = self.config.training.local_batch_size // self.num_pipeline_parallel_microbatches
        for step in self.run.batches(data, torch.stack):
            self.loss = None
            for part in step.split(size):
                positions = torch.arange(part.shape[1] - 1).expand(len(part), -1)
                yield {"input": part[:, :-1], "positions": positions}, part[:, 1:]

    def forward_backward_step(self, **batch):
        loss = super().forward_backward_step(**batch)  # a sum, divided by the tokens of all processes
        if not self.parallel_dims.pp_enabled or self.pp_has_last_stage:
            self.loss = (self.loss or 0.0) + loss.detach() * self.readers
        return loss

    def should_continue_training(self):
        return not self.run.done

    def close(self):
        if self.run.done:
            self.run.save(str(self.out / "trained"))
            if torch.distributed.get_rank() == 0:
                print(f"done: state {self.run.summary()['state_hash']}", flush=True)
        self.run.__exit__(*sys.exc_info())
        super().close()


def of_run(given):
    config = Worker.Config(**{field.name: getattr(given, field.name) for field in dataclasses.fields(given)})
    config.training.max_norm = math.inf
    config.training.disable_cuda_graphs = True  # each step has other tensors for gradients
    config.validator.enable = False
    return config


def llama3_debugmodel():
    return of_run(llama3.llama3_debugmodel())


def deepseek_v3_debugmodel():
    return of_run(deepseek_v3.deepseek_v3_debugmodel())


if __name__ == "__main__":
    model = globals()[sys.argv[1]]().model_spec.model.build()
    model.init_weights(buffer_device=torch.device("cpu"))
    distro_train.save_initial(model, "initial", outside=["lm_head.weight"])
