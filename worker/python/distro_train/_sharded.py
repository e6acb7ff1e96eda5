"""A module whose parameters lie in parts in the processes of one worker: DTensors of FSDP2 or of tensor parallelism."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from ._inner import Inner, RunOptimizer
from ._ranks import Ranks


class _Described(NamedTuple):
    """A tensor without its values."""

    shape: torch.Size
    dtype: torch.dtype


class Sharded:
    """Moves whole tensors between rank 0 and the parts in all processes, one after another: no process but rank 0
    holds more than one whole tensor at a time.

    Every process calls the same functions in the same order. Error: another process has ended. ValueError: a parameter
    that cannot be trained so; names it and the remedy."""

    def __init__(self, model: torch.nn.Module, parameters: Mapping[str, torch.nn.Parameter], ranks: Ranks) -> None:
        names = ranks.of_first(True if ranks.rank == 0 else None, lambda _: list(parameters))
        if names != list(parameters):
            raise ValueError(
                f"model: has other parameters than at rank 0, such as {_only_one(names, parameters)!r}: each process "
                "must have a part of every parameter, so a pipeline cannot be trained yet"
            )
        for name, value in parameters.items():
            _check(name, value, ranks)
        for name, value in model.named_parameters():
            if isinstance(value, DTensor) and not value.requires_grad:
                raise ValueError(
                    f"parameter {name!r}: is frozen and in parts, and nothing could compare it with other workers': "
                    "keep frozen parts out of fully_shard (ignored_params)"
                )
        self._model = model
        self._parameters = parameters
        self._ranks = ranks
        #: What the run sees: whole tensors by name, float32 in the host's memory. Only rank 0 has them.
        self.wholes: dict[str, torch.nn.Parameter] = {}
        if ranks.rank == 0:
            self.wholes = {name: torch.nn.Parameter(torch.zeros(value.shape)) for name, value in parameters.items()}

    def inner(self, optimizer: torch.optim.Optimizer) -> Inner:
        return _ShardedInner(optimizer, self, self._ranks)

    def reshard(self) -> None:
        """Ends what FSDP2 keeps whole after a forward without a backward, when the module has other tensors."""
        for part in self._model.modules():
            if isinstance(part, FSDPModule):
                part.reshard()

    def gather(self) -> None:
        """Sets `wholes` to the module's values."""
        self.reshard()
        with torch.no_grad():
            for name, value in self._parameters.items():
                whole = self._ranks.guarded(partial(_whole, value))
                if self.wholes:
                    self.wholes[name].copy_(whole)

    def gather_gradients(self) -> None:
        """Sets the gradients of `wholes` to those of the module."""
        with torch.no_grad():
            for name, gradient in zip(self._parameters, self._gradients()):
                whole = self._ranks.guarded(partial(_whole, gradient))
                if self.wholes:
                    self.wholes[name].grad = whole.cpu()

    def scatter(self) -> None:
        """Sets the module to `wholes`."""
        self.reshard()
        with torch.no_grad():
            for name, value in self._parameters.items():
                _local(value).copy_(self._part(self.wholes.get(name), value, _Described(value.shape, value.dtype)))

    def clip(self, clip_norm: float) -> float:
        """Scales the gradients to a norm of at most `clip_norm` over all processes, and returns the norm before, which
        has the same bits in each. If it is not finite, only returns it. A missing gradient becomes zeros."""
        with torch.no_grad():
            gradients = self._gradients()
            squares = self._ranks.guarded(lambda: sum(_norm(gradient) ** 2 for gradient in gradients))
            norm = self._ranks.mean(math.sqrt(squares))
            if math.isfinite(norm) and norm > clip_norm:
                for gradient in gradients:
                    gradient.mul_(clip_norm / norm)
        return norm

    def state_of(self, inner: torch.optim.Optimizer) -> dict[str, Any]:
        """The optimizer's state with whole tensors in the host's memory, as a program without shards has it. Empty at
        other processes than rank 0."""
        first = self._ranks.rank == 0

        def whole(tensor: torch.Tensor) -> torch.Tensor | None:
            gathered = self._ranks.guarded(partial(_whole, tensor))
            return gathered.cpu() if first else None

        held: dict[str, Any] = _with_tensors(inner.state_dict(), whole)
        return held if first else {}

    def load_state(self, inner: torch.optim.Optimizer, held: dict[str, Any] | None) -> None:
        """Loads such a state, which rank 0 has; None there: none is loaded."""
        first = True if self._ranks.rank == 0 else None
        described = self._ranks.of_first(
            first, lambda _: _with_tensors(held, lambda tensor: _Described(tensor.shape, tensor.dtype))
        )
        if described is None:
            return
        optimizers = inner.parts if isinstance(inner, RunOptimizer) else [inner]
        states, wholes = _states(described), [{}] * len(optimizers) if held is None else _states(held)
        if len(states) != len(optimizers):
            raise ValueError("the inner optimizer's state is of one of other parts")
        for optimizer, state, of_first in zip(optimizers, states, wholes):
            parameters = [value for group in optimizer.param_groups for value in group["params"]]
            for index, entries in state["state"].items():
                for name, entry in entries.items():
                    if isinstance(entry, _Described):
                        whole = of_first["state"][index][name] if of_first else None
                        entries[name] = self._like(whole, parameters[index], entry)
        inner.load_state_dict(described)

    def _like(self, whole: torch.Tensor | None, parameter: torch.Tensor, described: _Described) -> torch.Tensor:
        """Rank 0's tensor, placed as the parameter where it has its shape."""
        if described.shape != parameter.shape:
            return self._part(whole, None, described)
        part = self._part(whole, parameter, described)
        if not isinstance(parameter, DTensor):
            return part
        return DTensor.from_local(
            part.contiguous(),
            parameter.device_mesh,
            parameter.placements,
            run_check=False,
            shape=parameter.shape,
            stride=parameter.stride(),
        )

    def _part(self, whole: torch.Tensor | None, parameter: torch.Tensor | None, described: _Described) -> torch.Tensor:
        """Of rank 0's tensor, the part that this process has of the parameter, on its device."""
        device = torch.device("cpu") if parameter is None else parameter.device
        if whole is None:
            whole = torch.empty(described.shape, dtype=described.dtype, device=device)
        else:
            whole = whole.detach().to(device, described.dtype)
        self._ranks.broadcast([whole])
        if not isinstance(parameter, DTensor):
            return whole
        shape, offset = _place(parameter)
        return whole[tuple(slice(first, first + size) for first, size in zip(offset, shape))]

    def _gradients(self) -> list[torch.Tensor]:
        found = []
        for value in self._parameters.values():
            if value.grad is None:
                value.grad = torch.zeros_like(value)
            found.append(value.grad)
        return found


class _ShardedInner(Inner):
    """An inner optimizer that every process has for its parts. `state` and `reset` are rank 0's, while the others wait
    for it; the rest is called in every process."""

    def __init__(self, optimizer: torch.optim.Optimizer, sharded: Sharded, ranks: Ranks) -> None:
        super().__init__(optimizer)
        self._sharded = sharded
        self._ranks = ranks
        ranks.calls = {"state": lambda: sharded.state_of(optimizer), "reset": super().reset}

    def reset(self) -> None:
        self._ranks.everywhere("reset")

    def state(self) -> dict[str, Any]:
        held: dict[str, Any] = self._ranks.everywhere("state")
        return held

    def load(self, held: dict[str, Any] | None) -> None:
        self._sharded.load_state(self.optimizer, held)


def _check(name: str, value: torch.Tensor, ranks: Ranks) -> None:
    """ValueError: a parameter that cannot be trained so."""
    if value.dtype != torch.float32:
        raise ValueError(
            f"parameter {name!r}: is {str(value.dtype).removeprefix('torch.')} and in parts, which are stepped in "
            "float32: fully_shard(model.float(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))"
        )
    if isinstance(value, DTensor):
        if value.device_mesh.size() not in (ranks.size, ranks.data_size):
            raise ValueError(
                f"parameter {name!r}: lies in {value.device_mesh.size()} of {ranks.size} processes, of which "
                f"{ranks.data_size} read different samples: give data_mesh, the processes that do"
            )
    elif ranks.data_size > 1:
        raise ValueError(
            f"parameter {name!r}: is whole in every process, and the gradients of all but rank 0 would be lost: "
            "fully_shard the whole model after its layers"
        )


def _only_one(first: list[str], own: Mapping[str, Any]) -> str:
    """A name that only one of both has."""
    return next((name for name in (*own, *first) if (name in own) != (name in first)), first[0])


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _norm(tensor: torch.Tensor) -> float:
    return float(_whole(torch.linalg.vector_norm(tensor, dtype=torch.float32)))


def _place(tensor: DTensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and offset of this process's part."""
    shape, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return tuple(shape), tuple(offset)


def _states(held: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the optimizers inside one."""
    parts: list[dict[str, Any]] = held.get("parts", [held])
    return parts


def _with_tensors(held: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same dictionaries and lists, with every tensor changed."""
    if isinstance(held, torch.Tensor):
        return change(held)
    if isinstance(held, dict):
        return {key: _with_tensors(value, change) for key, value in held.items()}
    if isinstance(held, (list, tuple)):
        return type(held)(_with_tensors(value, change) for value in held)
    return held
