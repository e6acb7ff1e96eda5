"""The processes of a worker other than rank 0: they compute gradients, and rank 0 takes the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ._ranks import Ranks

if TYPE_CHECKING:
    from ._optimizer import Optimizer


class Follower:
    """The counterpart of Lead in the other ranks, with the same functions."""

    def __init__(self, named_parameters: dict[str, torch.nn.Parameter], ranks: Ranks) -> None:
        self._parameters = named_parameters
        self._ranks = ranks
        self.asked = ""

    def masters(self) -> dict[str, torch.Tensor]:
        """The module's own parameters; only rank 0 steps them."""
        return dict(self._parameters)

    def join(self, timeout: float | None) -> dict[str, Any]:
        found = self._listen()
        self.asked = "joined"
        return found

    def attach(self, optimizer: Optimizer) -> None:
        pass

    def advance(self, loss: float) -> bool:
        told = self._listen()
        self.asked = told["asked"]
        return bool(told["round_ended"])

    def samples(self, size: int) -> tuple[list[int], list[int]]:
        given: tuple[list[int], list[int]] = self._listen(tensors=False)["samples"]
        return given

    def held_out(self, size: int | None) -> tuple[int, int]:
        if size is None:
            return 0, 0
        given: tuple[int, int] = self._listen(tensors=False)["samples"]
        return given

    def ending(self) -> tuple[str, str, str]:
        return ("OK", "", "")  # another one is raised where it is heard

    def memory(self) -> dict[str, Any]:
        return {
            name: {"module": parameter.nbytes, "master": 0, "host": 0, "replica": 0, "rule": 0}
            for name, parameter in self._parameters.items()
        }

    def summary(self) -> dict[str, Any]:
        return {}

    def progress(self) -> str:
        return ""

    def save(self, model: torch.nn.Module, folder: str) -> None:
        pass

    def close(self) -> None:
        self.asked = "end"

    def _listen(self, tensors: bool = True) -> dict[str, Any]:
        told: dict[str, Any] = {}
        while not told:  # a sign of life
            told = self._ranks.share()
        if "error" in told:
            raise told["error"]
        if tensors:
            self._ranks.share_tensors(self._parameters.values())
        done: dict[str, Any] = told["done"]
        return done
