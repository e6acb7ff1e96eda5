"""The inner optimizer of a run of deltas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


class Inner:
    """What a run does with an inner optimizer that a program made."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    def step(self, rate: float) -> None:
        """One step along the gradients. `rate` is the run's, which only a RunOptimizer follows."""
        if isinstance(self.optimizer, RunOptimizer):
            self.optimizer.set_rate(rate)
        self.optimizer.step()

    def reset(self) -> None:
        """Resets the state to that before the first step."""
        if isinstance(self.optimizer, RunOptimizer):
            self.optimizer.reset()
        else:
            self.optimizer.state.clear()

    def state(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load(self, held: dict[str, Any] | None) -> None:
        """Loads a state. None: it begins without one."""
        if held is not None:
            self.optimizer.load_state_dict(held)


class RunOptimizer(torch.optim.Optimizer):
    """The one that run.json describes; distro-worker uses the same one for local steps. Muon for the matrices inside
    the model, AdamW for everything else (or AdamW for all), at the rate that the run has for the step.

    Muon is torch.optim.Muon with adjust_lr_fn="match_rms_adamw", the factor 0.2 * sqrt(longer side)
    of docs/algorithm.md; its moving average of gradients differs from the run's by a factor that
    the normalization takes out. Tensors of three dimensions or more, which it does not take, are
    AdamW's. Vectors do not decay."""

    def __init__(
        self,
        named: Mapping[str, torch.Tensor],
        muon: frozenset[str],
        config: Mapping[str, Any],
    ) -> None:
        by_muon = {name for name, value in named.items() if name in muon and value.ndim == 2}
        matrices = [value for name, value in named.items() if name in by_muon]
        others = [value for name, value in named.items() if name not in by_muon]
        decay = config["weight_decay"]
        self.parts: list[torch.optim.Optimizer] = []
        if matrices:
            self.parts.append(
                torch.optim.Muon(
                    matrices,
                    lr=0.0,
                    weight_decay=decay,
                    momentum=config["muon_momentum"],
                    adjust_lr_fn="match_rms_adamw",
                )
            )
        if others:
            self.parts.append(
                torch.optim.AdamW(
                    [
                        {"params": [p for p in others if p.ndim > 1], "weight_decay": decay},
                        {"params": [p for p in others if p.ndim <= 1], "weight_decay": 0.0},
                    ],
                    lr=0.0,
                    betas=(config["adam_beta1"], config["adam_beta2"]),
                    eps=config["adam_epsilon"],
                )
            )
        super().__init__(list(named.values()), {})
        self.param_groups = [group for part in self.parts for group in part.param_groups]
        self._rate = 0.0  # in every group

    def set_rate(self, rate: float) -> None:
        """Sets the next step's rate in every group. ValueError: another one was set since, as by a scheduler."""
        for group in self.param_groups:
            if group["lr"] != self._rate:
                raise ValueError(
                    f"Optimizer(run): the rate was set to {group['lr']}, and run.json decides it: leave the scheduler "
                    "out, or give Optimizer(run, inner) the optimizer that it is to act on"
                )
        for group in self.param_groups:
            group["lr"] = rate
        self._rate = rate

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step along the gradients."""
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if len(state_dict["parts"]) != len(self.parts):
            raise ValueError("the state is of an optimizer of other parts")
        for part, state in zip(self.parts, state_dict["parts"]):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]
        self._rate = self.param_groups[0]["lr"]

    def reset(self) -> None:
        """Resets the state to that before the first step."""
        for part in self.parts:
            part.state.clear()
