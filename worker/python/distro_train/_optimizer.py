"""The optimizer of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._inner import RunOptimizer
from ._run import Run

MakeInner = Callable[[list[torch.Tensor]], torch.optim.Optimizer]


class Optimizer(torch.optim.Optimizer):
    """Steps the module of a run.

    With method "deltas" it wraps an inner optimizer, with whatever rate and scheduler it has; every
    H-th step exchanges. Without `inner` it takes what run.json says (Muon and AdamW, at the run's
    rates). With method "signs" the step is the run's own and there is no inner optimizer.

    inner  a function from the parameters to step to a torch.optim.Optimizer over them:
           `lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)`. It is called once, with
           `list(run.masters.values())`: float32, the module's own tensors where these are float32.
           Or such an optimizer itself, over the parameters of a float32 module.

    `param_groups`, `state`, `state_dict` and `load_state_dict` are the inner optimizer's.

    The program computes gradients; the step clips them by the run's clip_norm. Afterwards they are set
    to None, so a loop needs no zero_grad.

    ValueError: an inner optimizer with method "signs", or one that does not step exactly the
    run's parameters. RuntimeError: the run has an optimizer already."""

    def __init__(self, run: Run, inner: torch.optim.Optimizer | MakeInner | None = None) -> None:
        deltas = run.config["method"] == "deltas"
        if inner is not None and not deltas:
            raise ValueError('inner: the run\'s method is "signs", whose step is its own: leave inner out')
        self.inner: torch.optim.Optimizer | None = None
        if inner is not None:
            self.inner = inner if isinstance(inner, torch.optim.Optimizer) else inner(list(run.masters.values()))
            _check_steps(self.inner, run)
        elif deltas:
            self.inner = RunOptimizer(run.masters, run.muon, run.config)
        self._run = run
        run.attach(self.inner)
        super().__init__(list(run.named_parameters.values()), {})
        self._bind()

    def step(self, loss: torch.Tensor | float | None) -> bool:  # type: ignore[override]
        """Takes one inner step along the gradients of the last batch of `run.batches`.

        loss  scalar: mean over the batch's samples, nats a token. None in the stages of a pipeline that
              have none

        True: it ended a round. Then the round's update was sent, the results received since were
        applied, and the module has the run's parameters; this waits for the network.
        False: the next batch is of the same round, or, with `batch_size`, of the same step.

        If the loss or a gradient is not finite, no step is taken. Error: the run ended. RuntimeError: no
        batch was taken since the last step."""
        return self._run.take(loss.item() if isinstance(loss, torch.Tensor) else loss)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of the module's parameters, also if the inner optimizer steps masters."""
        for parameter in self._run.named_parameters.values():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.zero_()

    def state_dict(self) -> dict[str, Any]:
        return {} if self.inner is None else self.inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self.inner is not None:
            self.inner.load_state_dict(state_dict)
            self._bind()

    def _bind(self) -> None:
        if self.inner is not None:
            self.param_groups = self.inner.param_groups
            self.state = self.inner.state


def _check_steps(inner: torch.optim.Optimizer, run: Run) -> None:
    """ValueError: it does not step exactly the run's parameters; names the first one and the remedy."""
    held = {id(p) for group in inner.param_groups for p in group["params"]}
    for name, master in run.masters.items():
        if id(master) in held:
            continue
        parameter = run.named_parameters[name]
        if id(parameter) in held:
            raise ValueError(
                f"inner: steps {name!r}, which is {str(parameter.dtype).removeprefix('torch.')}, and what is "
                "stepped is its float32 master copy: give a function, "
                "inner=lambda parameters: torch.optim.AdamW(parameters, lr=1e-3), or an optimizer over the tensors of "
                "run.masters"
            )
        raise ValueError(f"inner: does not step {name!r}, which the run trains")
