"""What rank 0 of a worker does with the C++ side, whose training thread asks it for what only a program can do."""

from __future__ import annotations

import concurrent.futures.thread
import functools
import json
import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from ._errors import Error, NotReachable, error_of, in_python
from ._inner import Inner
from ._save import save
from ._state import InnerState
from ._steps import LocalSteps

Result = TypeVar("Result")

_log = logging.getLogger("distro_train")
_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
_POLL_MILLISECONDS = 100  # between looks at signals while the C++ side works


class Session:
    """`native`: worker/python/session.h. `alive` is called now and then while the C++ side is waited for."""

    def __init__(self, native: Any, state_dir: str | None, alive: Callable[[], None]) -> None:
        self._native = native
        self._state_dir = state_dir
        self._alive = alive
        self._inner: Inner | None = None
        self._state: InnerState | None = None
        self._asked = False  # whether the training thread waits for an answer
        self._steps: LocalSteps | None = None  # of the round for which it does
        self._closed = False
        self._keeps = self._waited_for = True
        self._trouble = ""  # the last warning

    def masters(self, names: Iterable[str]) -> dict[str, torch.Tensor]:
        masters: dict[str, torch.Tensor] = self._native.masters()
        return {name: masters[name] for name in names}

    def join(self, timeout: float | None) -> tuple[str, dict[str, Any]]:
        """Starts, and waits until the run is joined. Returns what is asked, and the run's description
        (Session::Describe)."""
        code, reason, message = self._native.start()
        if code in ("INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED"):  # or a file that an argument names
            raise ValueError(in_python(message))
        _raise_if_failed(code, reason, message)
        asked = self._next(timeout)
        found: dict[str, Any] = json.loads(self._native.describe())
        if self._state_dir is not None:
            self._state = InnerState(self._state_dir, found["run_id"], found["local_steps"])
        return asked, found

    def attach(self, inner: Inner | None, waited_for: bool = False) -> dict[str, Any] | None:
        """Sets the inner optimizer, None where the method has none, and returns its saved state, if there is one.
        waited_for: by the other processes."""
        self._inner = inner
        if self._state is None or inner is None:
            return None
        return self._alive_during(self._state.load) if waited_for else self._state.load()

    def samples(self, size: int) -> tuple[list[list[int]], list[int], LocalSteps]:
        """Of a data set of this size: the samples of each step of the round; in order, those expected from its first
        one on; and the steps."""
        assert self._steps is not None
        samples, expected = self._native.samples(size)
        of_step = len(samples) // len(self._steps.rates)
        return [samples[first : first + of_step] for first in range(0, len(samples), of_step)], expected, self._steps

    def step(self, loss: float) -> str:
        """Takes a step along the module's gradients, of this mean loss, with the inner optimizer. After the round's
        last one as `answer`; empty: another follows."""
        steps = self._steps
        if steps is None or self._inner is None:  # with signs the step is the run's
            return self.answer(loss)
        *ending, norm = self._native.clip_gradients(steps.clip_norm)
        _raise_if_failed(*ending)
        if math.isfinite(loss) and math.isfinite(norm):
            self._inner.step(steps.rate)
            _raise_if_failed(*self._native.show_masters())
        return "" if self.count(loss, norm) else self.hand_in()

    def count(self, loss: float, norm: float) -> bool:
        """Counts a step that the program took. Returns whether another follows."""
        assert self._steps is not None
        return self._steps.count(loss, norm)

    def hand_in(self) -> str:
        """Answers with the round's steps; as `answer`."""
        assert self._steps is not None
        return self.answer(*self._steps.outcome())

    def answer(self, loss: float = 0.0, norm: float = 0.0, steps: int = 0, skipped: int = 0) -> str:
        """Answers what is asked, and returns what is asked next: `evaluate`, `round`, or `end`. Error: the run ended
        by one."""
        self._steps = None
        if self._asked:
            self._native.answer(loss, norm, steps, skipped)
        return self._next(None)

    def held_out(self, size: int | None) -> tuple[int, int]:
        """Of a data set of this size, the first sample that is held out, and how many of them an evaluation reads.
        None: the program does not evaluate."""
        self._native.set_evaluates(size is not None)
        first, count = (0, 0) if size is None else self._native.held_out(size)
        return first, count

    def memory(self) -> dict[str, Any]:
        held: dict[str, Any] = json.loads(self._native.describe_memory())
        return held

    def summary(self) -> dict[str, Any]:
        readings: dict[str, Any] = json.loads(self._native.summary())
        return readings

    def position(self) -> tuple[int, int]:
        """The round that is next, and the rounds of the run."""
        readings = self.summary()
        return readings["next_round"], readings["rounds"]

    def progress(self) -> str:
        """Of the last round, for people."""
        return str(self._native.progress())

    def save(self, model: torch.nn.Module, state: dict[str, torch.Tensor], folder: str) -> None:
        save(model, state, self._native, folder)

    def close(self, hand_in: bool = True, keep: bool = True) -> None:
        """Waits until the training thread has saved the state and ended. hand_in: with the steps of an open round.
        keep: with the inner optimizer's state; otherwise the last saved state stays. Other processes wait for this
        one where they have parts of that state, and of no steps."""
        self._closed, self._keeps, self._waited_for = True, keep, keep and not hand_in
        steps, self._steps = self._steps, None
        self._native.close(*(0.0, 0.0, 0, 0) if steps is None or not hand_in else steps.outcome())
        self._next(None)

    def _next(self, timeout: float | None) -> str:
        """Serves the training thread until it asks for what the program's loop does, or ends."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        asked = ""
        while asked == "":
            if time.monotonic() > end:
                trouble = f": {self._trouble}" if self._trouble else ""
                raise NotReachable(f"no run was joined within {timeout} s{trouble}")
            asked, rates, clip_norm, seconds, local_steps = self._wait()
            if asked == "save":
                self._native.answer(self._keep(local_steps), 0.0, 0, 0)
                asked = ""
            elif asked == "reset":
                self._reset()
                self._native.answer(0.0, 0.0, 0, 0)
                asked = ""
            elif asked == "round":
                self._steps = LocalSteps(rates, clip_norm, seconds)
        self._asked = asked != "end"
        if asked == "end" and not self._closed:
            _raise_if_failed(*self._native.ending())
        return asked

    def _wait(self) -> tuple[str, list[float], float, float, int]:
        """The next request; empty after a short time without one, so that Python handles signals."""
        request: tuple[str, list[float], float, float, int] = self._native.wait(_POLL_MILLISECONDS)
        for line in self._native.take_log():
            _, level, text = line.split(maxsplit=2)
            text = in_python(text.rstrip("\n"))
            _log.log(_LEVELS[level], "%s", text)
            if level in ("WARN", "ERROR"):
                self._trouble = text
        if self._waited_for:
            self._alive()
        return request

    def _reset(self) -> None:
        """Resets the inner optimizer's state: the result of its steps was not finite."""
        _log.warning("the inner optimizer begins anew: its steps were not finite")
        if self._inner is not None:
            self._inner.reset()

    def _keep(self, local_steps: int) -> float:
        """Saves the inner optimizer's state. 1: done, or nothing to save; 0: it failed."""
        if self._inner is None or self._state is None:
            return 1.0  # nothing was stepped since it was kept
        try:
            if not self._keeps:
                raise Error("the processes of this worker did not end together")
            self._alive_during(functools.partial(self._state.save, local_steps, self._inner.state()))
        except (OSError, Error) as error:
            _log.error("the inner optimizer's state was not kept: %s", error)
            return 0.0
        return 1.0

    def _alive_during(self, work: Callable[[], Result]) -> Result:
        """Works on a disk, which may be slow, on a thread of its own, and gives signs of life meanwhile."""
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            try:
                done = thread.submit(work)
            except RuntimeError:  # the interpreter ends, and starts none
                return work()
            while concurrent.futures.wait([done], _POLL_MILLISECONDS / 1000).not_done:
                if self._waited_for:
                    self._alive()
        return done.result()


def _raise_if_failed(code: str, reason: str, message: str) -> None:
    """Error: a status of the C++ side that is not OK."""
    if code != "OK":
        raise error_of(code, reason, message)
