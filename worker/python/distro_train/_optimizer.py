"""The optimizer of a run."""

from __future__ import annotations

import logging
from typing import Any

import torch

from ._inner import RunOptimizer
from ._run import Run

_log = logging.getLogger("distro_train")


class Optimizer(torch.optim.Optimizer):
    """Steps the module of a run.

    With method "deltas" it wraps `inner`, any torch.optim.Optimizer over the module's parameters,
    with whatever rate and scheduler it has; every H-th step exchanges. Without `inner` it takes what
    run.json says (Muon and AdamW, at the run's rates). With method "signs" the step is the run's
    own and there is no inner optimizer.

    `param_groups`, `state`, `state_dict` and `load_state_dict` are the inner optimizer's.

    Gradients are the program's to make, clipping is the run's (clip_norm). They are set to None after
    each step, so a loop needs no zero_grad.

    ValueError: an inner optimizer with method "signs", or one that does not have the module's
    parameters. RuntimeError: the run has an optimizer already."""

    def __init__(self, run: Run, inner: torch.optim.Optimizer | None = None) -> None:
        deltas = run.config["method"] == "deltas"
        if inner is not None and not deltas:
            raise ValueError('inner: the run\'s method is "signs", whose step is its own: leave inner out')
        if inner is not None:
            held = {id(p) for group in inner.param_groups for p in group["params"]}
            missing = [name for name, p in run.named_parameters.items() if id(p) not in held]
            if missing:
                raise ValueError(f"inner: does not step {missing[0]!r}, which the run trains")
        self._by_run = RunOptimizer(run.named_parameters, run.muon, run.config) if deltas and inner is None else None
        self.inner: torch.optim.Optimizer | None = inner or self._by_run
        self._run = run
        super().__init__(list(run.named_parameters.values()), {})
        if self.inner is not None:
            self.param_groups = self.inner.param_groups
            self.state = self.inner.state
        run.attach(self)

    def step(self, loss: torch.Tensor | float) -> bool:  # type: ignore[override]
        """One inner step along the gradients of the batch that `run.batches` gave last.

        loss  scalar: mean over the batch's samples, nats a token

        True: it ended a round. Then what the round's steps did was sent, the results that came
        since were applied, and the module has the run's parameters; this waits for the network.
        False: the next batch is of the same round, or, with `batch_size`, of the same step.

        A loss or gradient that is not finite steps nothing. Error: the run ended. RuntimeError: no
        batch was taken since the last step."""
        return self._run.take(loss.item() if isinstance(loss, torch.Tensor) else loss)

    def state_dict(self) -> dict[str, Any]:
        return {} if self.inner is None else self.inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self.inner is not None:
            self.inner.load_state_dict(state_dict)
            self.param_groups = self.inner.param_groups

    def step_inner(self, rate: float) -> None:
        """Called by the run. The gradients are clipped."""
        if self._by_run is not None:
            self._by_run.set_rate(rate)
        if self.inner is not None:
            self.inner.step()

    def reset_inner(self) -> None:
        """Called by the run: what the steps did was not finite, their state is forgotten."""
        _log.warning("the inner optimizer begins anew: its steps were not finite")
        if self._by_run is not None:
            self._by_run.reset()
        elif self.inner is not None:
            self.inner.state.clear()
