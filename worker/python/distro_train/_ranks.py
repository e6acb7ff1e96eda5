"""The processes of one worker; rank 0 talks with the aggregator."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from ._errors import Error
from ._library import is_sharded
from ._liveness import Liveness

First = TypeVar("First")
Result = TypeVar("Result")

#: Of an operation with another process that lives. One that ends is noticed at once, one that is stopped by Liveness.
_TIMEOUT = datetime.timedelta(minutes=5)
_SIGN_OF_LIFE_SECONDS = 5  # between messages of rank 0 while the others wait for it


class Ranks:
    """The processes of a worker: this one alone, or those of torch.distributed's default group, with a group of
    their own for everything except gradients. Every process calls the same functions in the same order. Error:
    another process has ended.

    data_mesh  the processes that read different samples; None: all of them"""

    def __init__(self, alone: bool, data_mesh: Any = None) -> None:
        self._dist = torch.distributed
        self.rank, self.size = (0, 1) if alone else (self._dist.get_rank(), self._dist.get_world_size())
        #: The processes that read different samples.
        self.data_ranks = list(range(self.size)) if data_mesh is None else data_mesh.mesh.flatten().tolist()
        self.data_rank, self.data_size = self.data_ranks.index(self.rank), len(self.data_ranks)
        self._group: Any = None if alone else self._dist.new_group(backend="gloo", timeout=_TIMEOUT)
        self._liveness = None if self._group is None else Liveness(self.rank, self.size, self._group.group_name)
        self._heard = 0.0
        self._met = False  # the processes, in the default group
        #: What `everywhere` calls, by name.
        self.calls: dict[str, Callable[[], Any]] = {}

    def of_first(
        self, first: First | None, work: Callable[[First], Result], tensors: Iterable[torch.Tensor] = ()
    ) -> Result:
        """Returns work(first) of rank 0, or raises its error, in every process; afterwards rank 0's `tensors` are in
        every process, bit for bit. `first` is what only rank 0 has: None elsewhere."""
        told: dict[str, Any] = {}
        if first is None:
            while not told:  # a sign of life
                told = self._share({})
                if "call" in told:
                    self.calls[told.pop("call")]()
            if "error" in told:
                raise told["error"]
        else:
            try:
                told["done"] = work(first)
            except BaseException as error:
                own = error if isinstance(error, (Error, ValueError)) else Error(f"rank 0: {error!r}")
                with contextlib.suppress(Error):  # who has gone too need not hear it
                    self._share({"error": own})
                raise
            self._share(told)
        self.broadcast(tensors)
        done: Result = told["done"]
        return done

    def everywhere(self, name: str) -> Any:
        """Calls calls[name] in every process, while the others wait in `of_first`. Only in `work` of rank 0. Returns
        rank 0's result."""
        self._share({"call": name})
        return self.calls[name]()

    def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        """Afterwards rank 0's tensors are in every process, bit for bit."""
        if self.size > 1:
            self.guarded(lambda: self._broadcast(tensors))

    def whole(self, tensor: torch.Tensor) -> torch.Tensor:
        """Of a tensor in parts all of it, on its device: every process that has a part calls this. Others as they
        are."""
        parts: Any = tensor
        return self.guarded(parts.full_tensor) if is_sharded(tensor) else tensor

    def mean(self, value: float | None) -> float:
        """The mean over the processes that have a value, with the same bits in each. RuntimeError: none has one."""
        total, count = self.sums([value or 0.0, value is not None])
        if count == 0:
            raise RuntimeError("no process has a loss: give it to Optimizer.step where the last stage is")
        return total / count

    def sums(self, values: list[float]) -> list[float]:
        """Over the processes, with the same bits in each."""
        sums = torch.tensor(values, dtype=torch.float64)
        if self.size > 1:
            self.guarded(lambda: self._dist.all_reduce(sums, group=self._group))
        held: list[float] = sums.tolist()
        return held

    def gather(self, value: Result) -> list[Result]:
        """What each process has, by rank."""
        every: list[Any] = [value] * self.size
        if self.size > 1:
            self.guarded(lambda: self._dist.all_gather_object(every, value, group=self._group))
        return every

    def collect(self, value: Result) -> list[Result]:
        """At rank 0 what each process has, by rank; elsewhere nothing."""
        every: list[Any] = [value] * self.size
        if self.size > 1:
            at_first = every if self.rank == 0 else None
            self.guarded(lambda: self._dist.gather_object(value, at_first, dst=0, group=self._group))
        return every if self.rank == 0 else []

    def barrier(self) -> None:
        """Returns once every process has called it."""
        if self.size > 1:
            self.guarded(lambda: self._dist.barrier(group=self._group))

    def collect_tensors(self, own: torch.Tensor, elements: list[int]) -> list[torch.Tensor]:
        """At rank 0 the tensor of each process, in the host's memory; elsewhere nothing. `elements`: of each process's
        tensor, on the same kind of device."""
        if self.rank > 0:
            self._exchange(own.device, [(self._dist.isend, own, 0)])
            return []
        every = [own, *(own.new_empty(number) for number in elements[1:])]
        self._exchange(own.device, [(self._dist.irecv, one, rank) for rank, one in enumerate(every) if rank > 0])
        return self.guarded(lambda: [one.cpu() for one in every])

    def scatter(self, sent: list[torch.Tensor], elements: list[int], device: torch.device) -> torch.Tensor:
        """What rank 0 sends this process, on `device`. `sent`: to each, in the host's memory; only rank 0 has it.
        `elements`: of each."""
        if self.rank > 0:
            own = torch.empty(elements[self.rank], device=device)
            self._exchange(device, [(self._dist.irecv, own, 0)])
            return own
        every = [one.to(device) for one in sent]
        self._exchange(device, [(self._dist.isend, one, rank) for rank, one in enumerate(every) if rank > 0])
        return every[0]

    def _exchange(self, device: torch.device, operations: list[tuple[Any, torch.Tensor, int]]) -> None:
        """Sends and receives tensors that are not empty. Every process calls it."""
        if self.size > 1:
            self.guarded(lambda: self._run(device, operations))

    def _run(self, device: torch.device, operations: list[tuple[Any, torch.Tensor, int]]) -> None:
        group = self._group if device.type == "cpu" else None
        if group is None and not self._met:
            # NCCL wants all processes in a group's first operation, and not all need send.
            self._dist.all_reduce(torch.zeros(1, device=device))
        self._met = True
        pending = [self._dist.P2POp(what, one, peer, group) for what, one, peer in operations if one.numel() > 0]
        for work in self._dist.batch_isend_irecv(pending) if pending else []:
            work.wait()

    def sign_of_life(self) -> None:
        """Rank 0 calls it again and again in `work` that waits."""
        if time.monotonic() > self._heard + _SIGN_OF_LIFE_SECONDS:
            self._share({})
            self._heard = time.monotonic()

    @property
    def open(self) -> bool:
        """Whether the program has not ended all groups."""
        return self.size == 1 or (self._group is not None and self._dist.is_initialized())

    def close(self) -> None:
        """Ends the group and its threads; no other function may be called afterwards. A thread of gloo
        that lets go of its last tensor while the interpreter ends aborts the process."""
        self.calls = {}  # which refer to the whole tensors
        if self._liveness is not None:
            self._liveness.close()
        if self._group is not None and self.open:
            self._dist.destroy_process_group(self._group)
        self._group = None

    def _share(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns rank 0's message in every process."""
        holder = [message]
        if self.size > 1:
            self.guarded(lambda: self._dist.broadcast_object_list(holder, src=0, group=self._group))
        return holder[0]

    def _broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        pending, copies = [], []
        for tensor in tensors:
            own = tensor.detach()
            sent = own.contiguous()
            if sent.data_ptr() != own.data_ptr():
                copies.append((own, sent))
            # As bytes: not every backend has every type of float.
            group = self._group if sent.device.type == "cpu" else None
            pending.append(self._dist.broadcast(sent.view(-1).view(torch.uint8), src=0, group=group, async_op=True))
        for work in pending:
            if work is not None:
                work.wait()
        for own, sent in copies:
            own.copy_(sent)

    def guarded(self, operation: Callable[[], Result]) -> Result:
        """The result of a collective operation."""
        try:
            return operation()
        except (torch.OutOfMemoryError, NotImplementedError):
            raise
        except RuntimeError as error:
            if self._liveness is not None:
                self._liveness.close()  # the program may take its time over what it does now
            raise Error(f"another process of this worker has gone: {error}") from error


def ranks(model: torch.nn.Module, sharded: bool, data_mesh: Any) -> Ranks:
    """The processes of this worker. ValueError: nobody averages the gradients of the model over them."""
    dist = torch.distributed
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return Ranks(alone=True)
    if not sharded and not any(isinstance(one, torch.nn.parallel.DistributedDataParallel) for one in model.modules()):
        raise ValueError(
            f"model: the {dist.get_world_size()} processes of torch.distributed are one worker, and the gradients of "
            "all but rank 0 would be lost: give fully_shard(model) or DistributedDataParallel(model); or, if each "
            "process is a worker of its own, leave init_process_group out"
        )
    return Ranks(alone=False, data_mesh=data_mesh)
