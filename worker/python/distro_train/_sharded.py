"""A module whose parameters lie in parts in the processes of one worker: DTensors of FSDP2 or of tensor parallelism,
or the layers of a pipeline's stages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from ._inner import Inner, RunOptimizer
from ._library import local_of
from ._module import adapters_of, entries
from ._ranks import Ranks
from ._shared_memory import shared_zeros

#: Elements of the tensors that travel in one operation, or of one that has more.
_TOGETHER = 1 << 24


class _Part(NamedTuple):
    """What of a whole tensor lies in a process."""

    name: str
    shape: tuple[int, ...]
    offset: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        return whole[tuple(slice(first, first + size) for first, size in zip(self.offset, self.shape))]


class _Described(NamedTuple):
    """A tensor without its values."""

    shape: torch.Size
    dtype: torch.dtype


class Sharded:
    """Moves whole tensors between rank 0 and the parts in all processes. Those of its machine copy to and from its
    memory themselves; to others travel 64 MB at a time, or a tensor that has more.

    Every process calls the same functions in the same order. Error: another process has ended. ValueError: a parameter
    that cannot be trained so; names it and the remedy."""

    def __init__(self, model: torch.nn.Module, parameters: Mapping[str, torch.nn.Parameter], ranks: Ranks) -> None:
        for fault in ranks.gather(next(_faults(model, parameters, ranks), None)):
            if fault is not None:
                raise ValueError(fault)
        self._model = model
        self._parameters = parameters
        self._ranks = ranks
        self._device = next(iter(parameters.values())).device
        # Of all processes: the shape of each parameter, and the first process that has it or a part of it.
        self._shapes: dict[str, torch.Size] = {}
        self._first: dict[str, int] = {}
        own = [(name, value.shape, *_place(value)) for name, value in parameters.items()]
        parts: list[list[_Part]] = []
        for rank, of_rank in enumerate(ranks.gather(own)):
            parts.append([_Part(name, shape, offset) for name, _, shape, offset in of_rank])
            for name, shape, _, _ in of_rank:
                self._first.setdefault(name, rank)
                if self._shapes.setdefault(name, shape) != shape:
                    raise ValueError(f"parameter {name!r}: has the shapes {list(self._shapes[name])} and {list(shape)}")
        owned = _distinct(parts, self._shapes)
        # Whole tensors in the memory of rank 0, where this process sees it.
        self._values, self._whole_gradients = self._in_first(ranks)
        # All parts of this process, and those that no process before it has, if it sees that memory.
        near = ranks.gather(bool(self._values))
        self._near_parts, self._near_owned = (of[ranks.rank] if near[ranks.rank] else [] for of in (parts, owned))
        # The same of the others, by what travels together and by rank.
        together = _together(self._shapes)
        self._parts, self._owned = (
            _divided([[] if sees else of_rank for sees, of_rank in zip(near, of)], together) for of in (parts, owned)
        )
        #: What the run sees: whole tensors by name, float32 in the host's memory. Only rank 0 has them.
        self.wholes: dict[str, torch.nn.Parameter] = {}
        if ranks.rank == 0:
            self.wholes = {name: torch.nn.Parameter(value) for name, value in self._values.items()}
        # The parameters that are placed alike, whose norm is one collective operation, and the keys of all processes.
        self._alike = self._placed_alike()
        self._keys = sorted({key for keys in ranks.gather(list(self._alike)) for key in keys})
        self._entries = self._described_entries()

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
        self._gather(self._parameters, self._values)

    def gather_gradients(self) -> None:
        """Sets the gradients of `wholes` to those of the module."""
        self._gather(self._gradients(), self._whole_gradients)
        for name, whole in self.wholes.items():
            whole.grad = self._whole_gradients[name]

    def scatter(self) -> None:
        """Sets the module to `wholes`. To be called once rank 0 has told the others that it has set them."""
        self.reshard()
        with torch.no_grad():
            for part in self._near_parts:
                local_of(self._parameters[part.name]).copy_(part.of(self._values[part.name]))
            for parts in self._parts:
                sent = [
                    _flat((part.of(self._values[part.name]) for part in of_rank), "cpu")
                    for of_rank in parts
                    if self._ranks.rank == 0
                ]
                received = self._ranks.scatter(sent, [_elements(of_rank) for of_rank in parts], self._device)
                for part, values in _split(parts[self._ranks.rank], received):
                    local_of(self._parameters[part.name]).copy_(values)
        self._ranks.barrier()  # rank 0 may change its memory again

    def _gather(self, tensors: Mapping[str, torch.Tensor], wholes: Mapping[str, torch.Tensor]) -> None:
        """Sets rank 0's `wholes` to the tensors, of which each process has its parts."""
        with torch.no_grad():
            for part in self._near_owned:
                part.of(wholes[part.name]).copy_(local_of(tensors[part.name]))
            for parts in self._owned:
                own = _flat((local_of(tensors[part.name]) for part in parts[self._ranks.rank]), self._device)
                received = self._ranks.collect_tensors(own, [_elements(of_rank) for of_rank in parts])
                for of_rank, flat in zip(parts, received):
                    for part, values in _split(of_rank, flat):
                        part.of(wholes[part.name]).copy_(values)
        self._ranks.barrier()  # all parts are there

    def _in_first(self, ranks: Ranks) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Values and gradients. Memory that nobody writes takes none: with deltas the gradients' half."""
        wholes = [_Part(name, tuple(shape), (0,) * len(shape)) for name, shape in self._shapes.items()]
        shared = shared_zeros(2 * _elements(wholes), ranks)
        if shared is None:
            return {}, {}
        values, gradients = ({part.name: whole for part, whole in _split(wholes, half)} for half in shared.chunk(2))
        return values, gradients

    def entries(self) -> dict[str, torch.Tensor]:
        """The whole module's state dict in the host's memory of rank 0, which has the trained tensors of `wholes`
        itself. Empty in other processes. Without the frozen parameters under adapters, which their base has."""
        self.reshard()
        found = entries(self._model)
        state: dict[str, torch.Tensor] = {}
        for name, (rank, what) in self._entries.items():
            if isinstance(what, _Described):
                value = self._whole_at(rank, found.get(name))
                value = self._at_first(rank, value, what) if rank > 0 else value
            else:
                value = self.wholes.get(what, state.get(what))
            if value is not None:
                state[name] = value
        return state

    def _described_entries(self) -> dict[str, tuple[int, str | _Described]]:
        """Of the whole module's state dict: the first process that has it, and what it is there, or the name of the
        same tensor."""
        names = {id(value): name for name, value in self._parameters.items()}
        adapted = bool(adapters_of(self._model))
        own: dict[str, str | _Described] = {}
        for name, value in entries(self._model).items():
            if id(value) in names:
                own[name] = names[id(value)]
            elif not (adapted and isinstance(value, torch.nn.Parameter)):
                own[name], names[id(value)] = _Described(value.shape, value.dtype), name
        first: dict[str, tuple[int, str | _Described]] = {}
        for rank, of_rank in enumerate(self._ranks.gather(own)):
            for name, what in of_rank.items():
                first.setdefault(name, (rank, what))
        return first

    def _at_first(self, rank: int, tensor: torch.Tensor | None, described: _Described) -> torch.Tensor | None:
        """At rank 0 the tensor in the host's memory of another process; elsewhere None."""
        sizes = [0] * self._ranks.size
        sizes[rank] = described.shape.numel() * described.dtype.itemsize
        own = torch.empty(0, dtype=torch.uint8) if tensor is None else tensor.reshape(-1).view(torch.uint8)
        received = self._ranks.collect_tensors(own, sizes)
        return received[rank].view(described.dtype).view(described.shape) if received else None

    def clip(self, clip_norm: float) -> float:
        """Scales the gradients to a norm of at most `clip_norm` over all processes, and returns the norm before, which
        has the same bits in each. If it is not finite, only returns it. A missing gradient becomes zeros."""
        with torch.no_grad():
            gradients = self._gradients()
            own = {key: self._norm([gradients[name] for name in names]) for key, names in self._alike.items()}
            norms = self._ranks.sums([own[key] if self._ranks.rank == key[0] else 0.0 for key in self._keys])
            norm = math.sqrt(sum(norm**2 for norm in norms))
            if math.isfinite(norm) and norm > clip_norm:
                for gradient in gradients.values():
                    gradient.mul_(clip_norm / norm)
        return norm

    def _placed_alike(self) -> dict[tuple[int, str], list[str]]:
        """Names by the first process that has them, and by where their parts are."""
        alike: dict[tuple[int, str], list[str]] = {}
        for name, value in self._parameters.items():
            place = ""
            if isinstance(value, DTensor):
                mesh = value.device_mesh
                place = str((mesh.mesh_dim_names, mesh.shape, value.placements))
            alike.setdefault((self._first[name], place), []).append(name)
        return alike

    def _norm(self, parts: list[torch.Tensor]) -> float:
        """Of tensors that are placed alike."""
        return float(self._ranks.whole(self._ranks.guarded(lambda: torch.nn.utils.get_total_norm(parts))))

    def state_of(self, inner: torch.optim.Optimizer) -> dict[str, Any]:
        """The optimizer's state with whole tensors in the host's memory, as a program without shards has it. Empty at
        other processes than rank 0."""
        parts = []
        for optimizer in _optimizers(inner):
            groups = self._groups(optimizer)
            own = optimizer.state_dict()
            names = [name for group in self._own_groups(optimizer) for name in group]
            entries = {}
            for index, entry in own["state"].items():
                first = self._first[names[index]]
                whole = {key: self._whole_at(first, value) for key, value in entry.items()}
                if first == self._ranks.rank:
                    entries[names[index]] = whole
            every = {name: entry for of_rank in self._ranks.collect(entries) for name, entry in of_rank.items()}
            order = [name for group in groups for name in group]
            state = {index: every[name] for index, name in enumerate(order) if name in every}
            parts.append({"state": state, "param_groups": _numbered(own["param_groups"], groups)})
        if self._ranks.rank > 0:
            return {}
        return {"parts": parts} if isinstance(inner, RunOptimizer) else parts[0]

    def load_state(self, inner: torch.optim.Optimizer, held: dict[str, Any] | None) -> None:
        """Loads such a state, which rank 0 has; None there: none is loaded."""
        described = self._ranks.of_first(True if self._ranks.rank == 0 else None, lambda _: _described_state(held))
        if described is None:
            return
        optimizers = _optimizers(inner)
        states, of_first = _parts(described), _parts(held) if held is not None else None
        if len(states) != len(optimizers):
            raise ValueError("the inner optimizer's state is of one of other parts")
        for part, (optimizer, state) in enumerate(zip(optimizers, states)):
            order = [name for group in self._groups(optimizer) for name in group]
            own_groups = self._own_groups(optimizer)
            own = [name for group in own_groups for name in group]
            loaded = {}
            for index, entry in state["state"].items():
                for key, value in entry.items():
                    if isinstance(value, _Described):
                        whole = None if of_first is None else of_first[part]["state"][index][key]
                        entry[key] = self._like(self._of_first(whole, value), self._parameters.get(order[index]))
                if order[index] in own:
                    loaded[own.index(order[index])] = entry
            state["state"], state["param_groups"] = loaded, _numbered(state["param_groups"], own_groups)
        inner.load_state_dict(described)

    def _whole_at(self, rank: int, value: Any) -> Any:
        """The whole tensor in the host's memory of that process, None elsewhere; other things as they are."""
        if not isinstance(value, torch.Tensor):
            return value
        every = self._ranks.whole(value)
        return every.detach().cpu() if self._ranks.rank == rank else None

    def _of_first(self, whole: torch.Tensor | None, described: _Described) -> torch.Tensor:
        """Rank 0's tensor, on the module's device; a scalar in the host's memory."""
        device = self._device if described.shape else torch.device("cpu")
        if whole is None:
            whole = torch.empty(described.shape, dtype=described.dtype, device=device)
        whole = whole.detach().to(device, described.dtype)
        self._ranks.broadcast([whole])
        return whole

    def _like(self, whole: torch.Tensor, parameter: torch.Tensor | None) -> torch.Tensor:
        """Placed as the parameter, where that has its shape."""
        if not isinstance(parameter, DTensor) or whole.dim() == 0 or whole.shape != parameter.shape:
            return whole
        return DTensor.from_local(
            _part(whole, parameter).clone(),
            parameter.device_mesh,
            parameter.placements,
            run_check=False,
            shape=parameter.shape,
            stride=parameter.stride(),
        )

    def _own_groups(self, optimizer: torch.optim.Optimizer) -> list[list[str]]:
        """The names of the parameters in each of its groups."""
        names = {id(value): name for name, value in self._parameters.items()}
        return [[names[id(value)] for value in group["params"]] for group in optimizer.param_groups]

    def _groups(self, optimizer: torch.optim.Optimizer) -> list[list[str]]:
        """Those in all processes, in the order of the whole module's."""
        every = self._ranks.gather(self._own_groups(optimizer))
        return [list(dict.fromkeys(name for groups in every for name in groups[at])) for at in range(len(every[0]))]

    def _gradients(self) -> dict[str, torch.Tensor]:
        found = {}
        for name, value in self._parameters.items():
            if value.grad is None:
                value.grad = torch.zeros_like(value)
            if isinstance(value.grad, DTensor) and value.grad.placements != _placements(value):
                # Each process has a summand, for example of a norm whose samples sequence parallelism divides.
                value.grad = self._ranks.guarded(partial(value.grad.redistribute, placements=_placements(value)))
            found[name] = value.grad
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


def _faults(model: torch.nn.Module, parameters: Mapping[str, torch.nn.Parameter], ranks: Ranks) -> Iterator[str]:
    """Why this process's parameters cannot be trained so."""
    if not parameters:
        yield "model: nothing of this process's part is trained: give each process a part that is"
    # FSDP2 averages the gradients of these.
    averaged = {id(value) for part in model.modules() if isinstance(part, FSDPModule) for value in part.parameters()}
    for name, value in parameters.items():
        if value.dtype != torch.float32:
            yield (
                f"parameter {name!r}: is {str(value.dtype).removeprefix('torch.')}, and a module in parts is stepped "
                "in float32: fully_shard(model.float(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))"
            )
        over = set(value.device_mesh.mesh.flatten().tolist()) if isinstance(value, DTensor) else {ranks.rank}
        if ranks.data_size > 1 and not (id(value) in averaged and over.issuperset(ranks.data_ranks)):
            yield (
                f"parameter {name!r}: nothing averages its gradients over the {ranks.data_size} processes that read "
                "different samples: fully_shard the whole model after its layers, or give data_mesh, the processes "
                "that do"
            )
        if isinstance(value, DTensor) and _place(value)[0] != tuple(value.to_local().shape):
            yield f"parameter {name!r}: its dimensions do not divide evenly over tensor parallelism and FSDP2: pad them"


def _distinct(parts: list[list[_Part]], shapes: Mapping[str, torch.Size]) -> list[list[_Part]]:
    """By rank, the parts that no process before it has. ValueError: they do not make whole tensors."""
    seen: set[_Part] = set()
    owned = []
    held = dict.fromkeys(shapes, 0)
    for of_rank in parts:
        owned.append([part for part in of_rank if part not in seen])
        seen.update(of_rank)
        for part in owned[-1]:
            held[part.name] += part.elements
    for name, shape in shapes.items():
        if held[name] != shape.numel():
            raise ValueError(
                f"parameter {name!r}: has {shape.numel()} elements, and its parts in the processes {held[name]}"
            )
    return owned


def _placements(tensor: torch.Tensor) -> Any:
    return tensor.placements if isinstance(tensor, DTensor) else None


def _place(parameter: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and offset of what lies in this process."""
    if not isinstance(parameter, DTensor):
        return tuple(parameter.shape), (0,) * parameter.dim()
    shape, offset = compute_local_shape_and_global_offset(parameter.shape, parameter.device_mesh, parameter.placements)
    return tuple(shape), tuple(offset)


def _part(whole: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """What of the whole tensor lies in this process."""
    return _Part("", *_place(parameter)).of(whole)


def _together(shapes: Mapping[str, torch.Size]) -> dict[str, int]:
    """By name, the number of the operation in which a tensor travels."""
    numbers: dict[str, int] = {}
    number = elements = 0
    for name, shape in shapes.items():
        if elements > 0 and elements + shape.numel() > _TOGETHER:
            number, elements = number + 1, 0
        numbers[name] = number
        elements += shape.numel()
    return numbers


def _divided(parts: list[list[_Part]], together: Mapping[str, int]) -> list[list[list[_Part]]]:
    """By operation and rank, without the operations in which nothing travels."""
    divided: list[list[list[_Part]]] = [[[] for _ in parts] for _ in range(1 + max(together.values()))]
    for rank, of_rank in enumerate(parts):
        for part in of_rank:
            divided[together[part.name]][rank].append(part)
    return [of_ranks for of_ranks in divided if any(of_ranks)]


def _elements(parts: list[_Part]) -> int:
    return sum(part.elements for part in parts)


def _flat(values: Iterable[torch.Tensor], device: torch.device | str) -> torch.Tensor:
    flat = [value.reshape(-1).to(device) for value in values]
    return torch.cat(flat) if flat else torch.empty(0, device=device)


def _split(parts: list[_Part], flat: torch.Tensor) -> Iterator[tuple[_Part, torch.Tensor]]:
    first = 0
    for part in parts:
        yield part, flat[first : first + part.elements].view(part.shape)
        first += part.elements


def _optimizers(inner: torch.optim.Optimizer) -> list[torch.optim.Optimizer]:
    return inner.parts if isinstance(inner, RunOptimizer) else [inner]


def _parts(held: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of `_optimizers`."""
    parts: list[dict[str, Any]] = held.get("parts", [held])
    return parts


def _numbered(groups: list[dict[str, Any]], names: list[list[str]]) -> list[dict[str, Any]]:
    """An optimizer's groups with the numbers of these parameters, counted over all groups."""
    numbers = iter(range(sum(map(len, names))))
    return [{**group, "params": [next(numbers) for _ in of_group]} for group, of_group in zip(groups, names)]


def _described_state(held: dict[str, Any] | None) -> dict[str, Any] | None:
    """The same without the values of its parameters' tensors."""
    if held is None:
        return None
    parts = [{**part, "state": {at: _described(entry) for at, entry in part["state"].items()}} for part in _parts(held)]
    return {"parts": parts} if "parts" in held else parts[0]


def _described(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _Described(value.shape, value.dtype) if isinstance(value, torch.Tensor) else value
        for key, value in entry.items()
    }
