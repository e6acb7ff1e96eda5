"""The local steps of one round."""

from __future__ import annotations

import math
import time


class LocalSteps:
    """Counts the steps that a round takes, and says when it is over.

    rates      of the inner optimizer, one a step
    clip_norm  the largest norm of a step's gradient
    seconds    until the round's window ends; infinite without one

    docs/algorithm.md, "Deltas"; worker/train/gradient_step.h has the same rules for distro-worker."""

    def __init__(self, rates: list[float], clip_norm: float, seconds: float) -> None:
        self.rates = rates
        self.clip_norm = clip_norm
        self._begin = time.monotonic()
        self._ends = self._begin + seconds
        #: Steps so far, and how many of them were skipped as not finite.
        self.taken = self.skipped = 0
        self._losses = 0.0  # of those that were not
        self._last = (0.0, 0.0)  # loss and norm of the last one of them, else of the last step

    @property
    def rate(self) -> float:
        """Of the next step."""
        return self.rates[self.taken]

    def count(self, loss: float, norm: float) -> bool:
        """Counts a step, which was skipped if its loss or the norm of its gradient is not finite. Returns whether
        another follows: one that is expected to end within the window, by the duration of those before."""
        finite = math.isfinite(loss) and math.isfinite(norm)
        if finite or self.skipped == self.taken:
            self._last = (loss, norm)
        self.taken += 1
        if finite:
            self._losses += loss
        else:
            self.skipped += 1
        now = time.monotonic()
        return self.taken < len(self.rates) and now + (now - self._begin) / self.taken <= self._ends

    def outcome(self) -> tuple[float, float, int, int]:
        """Mean loss of the steps, norm of the last one's gradient, both of finite steps if there was one; steps,
        skipped steps."""
        finite = self.taken - self.skipped
        loss, norm = self._last
        return (self._losses / finite if finite > 0 else loss), norm, self.taken, self.skipped
