"""Trains with transformers.Trainer in a run. Only this module of the package imports transformers.

    from distro_train.transformers import RunTrainer

    with distro_train.connect(..., model=model) as run:
        trainer = RunTrainer(run=run, model=model, args=args, train_dataset=dataset, data_collator=collate)
        trainer.train()                       # returns when the run is done
        trainer.save_model("trained")

For trainers that derive from transformers.Trainer: `class RunSFTTrainer(RunTrainerMixin, trl.SFTTrainer): pass`.

A callback alone is not enough: it sees no loss, and Trainer's own data loader requests a batch before the step
that determines the next samples.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
import transformers
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

from ._module import adapters_of
from ._optimizer import Optimizer
from ._run import Run

_REFUSED = {
    "fp16": "its loss scaling skips steps; use bf16=True",
    "auto_find_batch_size": "set per_device_train_batch_size",
    "load_best_model_at_end": "the model has the run's last parameters at the end",
    "deepspeed": "give connect a module in parts: fully_shard(model)",
    "fsdp": "give connect a module in parts: fully_shard(model)",
}
# What accelerate launch sets where its configuration has them.
_REFUSED_VARIABLES = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED")


class RunTrainerMixin:
    """A base class before transformers.Trainer, or a class that derives from it, that trains in `run`.

    The run determines the samples, their order, the samples per step and the end of training; `train`
    returns then, or after `max_steps` if that is set. Its method, inner optimizer,
    rates and clipping replace those of TrainingArguments: optim, learning_rate, weight_decay,
    warmup, lr_scheduler_type, max_grad_norm, num_train_epochs and seeds of data are not read. With
    optimizers=(inner, scheduler) as Trainer takes them, `inner` is the inner optimizer of a run of
    deltas and the scheduler, given or of TrainingArguments, acts on it.

    Of several processes, which torchrun starts, each makes TrainingArguments first, and gives `connect`
    and this class the same module: DistributedDataParallel(model), or one of fully_shard. Each calls what
    saves.

    per_device_train_batch_size divides a process's part of the samples_per_worker of run.json; gradients
    are accumulated over a step. Logging, evaluation, saving, bf16, gradient checkpointing and torch_compile are
    Trainer's; it evaluates on the samples that run.json holds out too, for the run's status page.
    What it logs as loss is the mean over the step's labels.

    ValueError: arguments that a run does not support, or a model that is not the run's; names them and
    the remedy. `train` raises what Optimizer.step raises."""

    def __init__(
        self,
        *positional: Any,
        run: Run,
        model: torch.nn.Module,
        args: Any,
        optimizers: tuple[Any, Any] = (None, None),
        callbacks: list[Any] | None = None,
        **named: Any,
    ) -> None:
        _check(run, model, args)
        inner, scheduler = optimizers
        if inner is None and scheduler is not None:
            raise ValueError("optimizers: a scheduler wants the inner optimizer that it acts on beside it")
        self.run = run
        self._step = _Step(run, inner)
        if inner is None:
            scheduler = _RunRates(self._step)
        args = copy.copy(args)
        batch = args.per_device_train_batch_size * run.processes
        args.gradient_accumulation_steps = run.config["samples_per_worker"] // batch
        args.max_grad_norm = 0.0
        ends = _EndsWithRun(run, limited=args.max_steps > 0)
        if args.max_steps <= 0:
            args.max_steps = max(1, run.steps - run.step)
        self._given = model
        super().__init__(  # type: ignore[call-arg]
            *positional,
            model=_inside(model),
            args=args,
            optimizers=(self._step, scheduler),
            callbacks=[ends, *(callbacks or [])],
            **named,
        )

    def get_train_dataloader(self) -> _Batches:
        """The batches of this worker's steps."""
        self._step.loss = 0.0  # that of a step that an exception cut off
        loader = super().get_train_dataloader()  # type: ignore[misc]  # which has Trainer's view of both
        return _Batches(self.run, loader.dataset, loader.collate_fn, self.args, self._loss_of)  # type: ignore[attr-defined]

    def _wrap_model(self, model: torch.nn.Module, training: bool = True, dataloader: Any = None) -> torch.nn.Module:
        """Trainer would wrap the module once more, although its processes share their gradients already."""
        if self.run.processes == 1:
            wrapped: torch.nn.Module = super()._wrap_model(model, training, dataloader)  # type: ignore[misc]
            return wrapped
        # Sets up autocast, as for a module that is only evaluated.
        self.accelerator.prepare_model(  # type: ignore[attr-defined]
            self.model,  # type: ignore[attr-defined]
            device_placement=False,
            evaluation_mode=True,
        )
        return self._given if training else model

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Trainer's, in every process; rank 0 writes whole tensors."""
        if self.run.in_parts and state_dict is None:
            adapted = bool(adapters_of(self.model))  # type: ignore[attr-defined]  # whose base is saved already
            options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=adapted)
            state_dict = get_model_state_dict(self.model, options=options)  # type: ignore[attr-defined]
        super()._save(output_dir, state_dict)  # type: ignore[misc]

    def _loss_of(self, batch: Any) -> torch.Tensor:
        args = self.args  # type: ignore[attr-defined]
        averaged, args.average_tokens_across_devices = args.average_tokens_across_devices, False  # of this batch alone
        try:
            loss: torch.Tensor = self.prediction_step(  # type: ignore[attr-defined]
                self.model,  # type: ignore[attr-defined]
                batch,
                prediction_loss_only=True,
            )[0]
        finally:
            args.average_tokens_across_devices = averaged
        return loss

    def training_step(self, *positional: Any, **named: Any) -> torch.Tensor:
        """Trainer's loss of a part of a step; the parts add up to the step's loss."""
        loss: torch.Tensor = super().training_step(*positional, **named)  # type: ignore[misc]
        self._step.loss += loss.item()
        return loss

    def train(self, resume_from_checkpoint: Any = None, **named: Any) -> Any:
        """Trainer's train. Continues automatically if connect got the state_dir of an earlier process."""
        if resume_from_checkpoint:
            raise ValueError("resume_from_checkpoint: the run has the parameters, and state_dir of connect the rest")
        return super().train(**named)  # type: ignore[misc]


class RunTrainer(RunTrainerMixin, transformers.Trainer):  # type: ignore[misc]
    """transformers.Trainer in a run."""


class _Step(Optimizer):
    """The Optimizer in the form that Trainer calls: `step` without the loss, which is added up before."""

    def __init__(self, run: Run, inner: torch.optim.Optimizer | None) -> None:
        super().__init__(run, inner)
        self.loss = 0.0
        for group in self.param_groups:
            group.setdefault("lr", 0.0)  # of signs, which has no inner optimizer

    def step(self, closure: Any = None) -> bool:  # type: ignore[override]
        loss, self.loss = self.loss, 0.0
        ended = super().step(loss)
        if self.inner is None:
            for group in self.param_groups:
                group["lr"] = self._run.summary().get("learning_rate") or 0.0  # rank 0 has it, which logs
        return ended


class _RunRates(torch.optim.lr_scheduler.LRScheduler):
    """A scheduler that keeps the run's rates; Trainer logs the rate of the last step."""

    def get_lr(self) -> list[float | torch.Tensor]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float | torch.Tensor]:
        return self.get_lr()


class _EndsWithRun(transformers.TrainerCallback):  # type: ignore[misc]
    """Trainer's count of steps is a guess for its progress bar, unless the user gave it: rounds may take fewer steps
    than H, or one again. Comes directly behind Trainer's own callback, which stops at that count."""

    def __init__(self, run: Run, limited: bool) -> None:
        self._run = run
        self._limited = limited

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = self._run.done or (self._limited and control.should_training_stop)


class _Batches:
    """Trainer's data loader: without a length, and reads nothing before the step that determines the samples."""

    def __init__(self, run: Run, dataset: Any, collate: Any, args: Any, loss_of: Callable[[Any], torch.Tensor]) -> None:
        self._run = run
        self._dataset = dataset
        self._collate = collate
        self._size = args.per_device_train_batch_size
        self._of_step = args.gradient_accumulation_steps
        self._loss_of = loss_of

    def __iter__(self) -> Iterator[Any]:
        for parts in self._run.batches(self._dataset, self._parts, held_out_loss=self._mean_loss):
            yield from (batch for _, batch in parts)

    def _parts(self, samples: list[Any]) -> list[tuple[int, Any]]:
        """The batches of a step, each with its number of samples. The last samples that are held out may make fewer:
        some that count as no samples fill up, because a forward may wait for those of the other processes."""
        parts = [samples[first : first + self._size] for first in range(0, len(samples), self._size)]
        batches = [(len(part), self._collate(part)) for part in parts]
        return batches + [(0, batches[0][1])] * (self._of_step - len(batches))

    def _mean_loss(self, parts: list[tuple[int, Any]]) -> float:
        losses = [(size, self._loss_of(batch).item()) for size, batch in parts]
        return sum(size * loss for size, loss in losses) / sum(size for size, _ in losses)


def _inside(model: torch.nn.Module) -> torch.nn.Module:
    """The module in DistributedDataParallel, which has the model's configuration; another one as it is."""
    wrappers = (one for one in model.modules() if isinstance(one, torch.nn.parallel.DistributedDataParallel))
    return next((one.module for one in wrappers), model)


def _check(run: Run, model: torch.nn.Module, args: Any) -> None:
    for name, remedy in _REFUSED.items():
        if getattr(args, name):
            raise ValueError(f"args.{name}: cannot be in a run: {remedy}")
    for name in _REFUSED_VARIABLES:
        if transformers.utils.strtobool(os.environ.get(name, "false")):
            raise ValueError(
                f"{name}: accelerate would divide the model itself: start the program by torchrun, and give connect a "
                "module in parts: fully_shard(model)"
            )
    if args.n_gpu > 1:
        raise ValueError("args: a process of a run has one device: start it by torchrun, or set CUDA_VISIBLE_DEVICES")
    if args.world_size != run.processes:
        raise ValueError(
            f"args: this is one of {args.world_size} processes, and connect saw {run.processes}: make "
            "TrainingArguments before connect"
        )
    if run.readers != run.processes:
        raise ValueError("data_mesh: all processes of a Trainer read different samples: leave it out of connect")
    if run.processes > 1 and args.torch_compile:
        raise ValueError("args.torch_compile: with several processes call module.compile() before connect")
    if hasattr(_inside(model), "_orig_mod"):
        raise ValueError(
            "model: Trainer cannot see which inputs a module of torch.compile takes: call module.compile() before "
            "connect, which compiles it in place"
        )
    if run.config["samples_per_worker"] % run.processes != 0:
        raise ValueError(
            f"args: the {run.config['samples_per_worker']} samples of a step do not divide over {run.processes} "
            "processes: start as many as divide samples_per_worker of run.json"
        )
    samples, size = run.config["samples_per_worker"] // run.processes, args.per_device_train_batch_size
    if samples % size != 0:
        raise ValueError(
            f"args.per_device_train_batch_size: {size} does not divide the {samples} samples of a step and process"
        )
    if args.gradient_accumulation_steps not in (1, samples // size):
        raise ValueError(
            f"args.gradient_accumulation_steps: {args.gradient_accumulation_steps} batches of {size} are not the "
            f"{samples} samples of a step and process: leave it out"
        )
    held = {id(parameter) for parameter in model.parameters()}
    for name, parameter in run.named_parameters.items():
        if id(parameter) not in held:
            raise ValueError(f"model: {name!r} of the run is not in it: give the module that connect was given")
        if parameter.device.type != args.device.type:
            raise ValueError(
                f"model: is on {parameter.device.type!r}, and Trainer would move it to {args.device.type!r}: do that "
                "before connect, or set args.use_cpu"
            )
