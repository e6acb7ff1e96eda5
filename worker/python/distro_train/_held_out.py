"""The loss on the samples that no worker trains on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._reader import Reader

Loss = Callable[[Any], "torch.Tensor | float | None"]


class HeldOut:
    """Evaluates a module. Several processes share the samples, and each calls the same functions."""

    def __init__(
        self, model: torch.nn.Module, loss: Loss, reader: Reader[Any, Any], parts: list[tuple[Sequence[int], float]]
    ) -> None:
        """`parts` as `parts_of_held_out` says."""
        self._model = model
        self._loss = loss
        self._reader = reader
        self._parts = parts

    def evaluate(self) -> float | None:
        """The part of this process in the mean loss; the sum over the processes that read different samples is the
        mean. None: this stage of a pipeline has no loss. The module is in evaluation meanwhile, and takes no
        gradient."""
        modes = [(module, module.training) for module in self._model.modules()]
        self._model.eval()
        try:
            with torch.no_grad():
                part = None
                for batch, weight in self._parts:
                    loss = self._loss(self._reader.read(batch))
                    if loss is not None:
                        part = (part or 0.0) + weight * float(loss)
                return part
        finally:
            for module, training in modes:
                module.training = training


def parts_of_held_out(
    first: int, count: int, batch_size: int, rank: int, ranks: int
) -> list[tuple[Sequence[int], float]]:
    """The batches of one process, each with its share of all samples. Every process has the same number of batches,
    because a forward of DistributedDataParallel may wait for the others; a share of 0 fills up."""
    whole: list[Sequence[int]] = [
        range(at, min(at + batch_size, first + count)) for at in range(first, first + count, batch_size)
    ]
    own = [(batch, len(batch) / count) for batch in whole[rank::ranks]]
    missing = -(-len(whole) // ranks) - len(own)
    return own + [(whole[0], 0.0)] * missing
