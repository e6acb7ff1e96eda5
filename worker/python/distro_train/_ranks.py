"""Communication between the processes of one worker; rank 0 talks with the aggregator."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import torch

from ._errors import Error

#: Silence of another process after which it counts as gone. One that ends is noticed at once.
_TIMEOUT = datetime.timedelta(minutes=5)


class Ranks:
    """The processes of torch.distributed's default group, with a group of their own for
    everything except gradients. Every process calls the same functions in the same order. Error:
    another process has ended."""

    def __init__(self) -> None:
        self._dist = torch.distributed
        self.rank = self._dist.get_rank()
        self.size = self._dist.get_world_size()
        self._group: Any = self._dist.new_group(backend="gloo", timeout=_TIMEOUT)

    def share(self, message: Any = None) -> Any:
        """Returns rank 0's value in every process."""
        holder = [message]
        self._guard(lambda: self._dist.broadcast_object_list(holder, src=0, group=self._group))
        return holder[0]

    def share_tensors(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copies rank 0's tensors to every process, bit for bit."""
        self._guard(lambda: self._broadcast(tensors))

    def mean(self, value: float) -> float:
        """The mean over all processes, with the same bits in each."""
        sum_of_all = torch.tensor(value, dtype=torch.float64)
        self._guard(lambda: self._dist.all_reduce(sum_of_all, group=self._group))
        return sum_of_all.item() / self.size

    def close(self) -> None:
        """Ends the group and its threads; no other function may be called afterwards. A thread of gloo
        that lets go of its last tensor while the interpreter ends aborts the process."""
        group, self._group = self._group, None
        if self._dist.is_initialized():  # otherwise the program has ended all groups
            self._dist.destroy_process_group(group)

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

    def _guard(self, operation: Any) -> None:
        try:
            operation()
        except RuntimeError as error:
            raise Error(f"another process of this worker has gone: {error}") from error


def ranks(model: torch.nn.Module) -> Ranks | None:
    """The processes of this worker; None if there is only this one. ValueError: nobody averages the gradients of
    the model over them."""
    dist = torch.distributed
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    if not any(isinstance(one, torch.nn.parallel.DistributedDataParallel) for one in model.modules()):
        raise ValueError(
            f"model: the {dist.get_world_size()} processes of torch.distributed are one worker, and the gradients of "
            "all but rank 0 would be lost: give DistributedDataParallel(model); or, if each process is a worker of its "
            "own, leave init_process_group out"
        )
    return Ranks()
