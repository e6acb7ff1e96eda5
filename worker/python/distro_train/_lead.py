"""The process of a worker that talks with the aggregator: serves the training thread of the C++ side."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from typing import TYPE_CHECKING, Any

import torch

from ._errors import Error, NotReachable, error_of, in_python
from ._ranks import Ranks
from ._save import save
from ._state import InnerState

if TYPE_CHECKING:
    from ._optimizer import Optimizer

_log = logging.getLogger("distro_train")
_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
_POLL_MILLISECONDS = 100  # between looks at signals while the C++ side works
_SIGN_OF_LIFE_SECONDS = 5  # that the other processes hear while it does


class Lead:
    """Answers the requests of `session` (worker/python/session.h), and with several processes shares
    the results with the others."""

    def __init__(
        self,
        session: Any,
        named_parameters: dict[str, torch.nn.Parameter],
        state_dir: str | None,
        ranks: Ranks | None,
    ) -> None:
        self._session = session
        self._parameters = named_parameters
        self._state_dir = state_dir
        self._ranks = ranks
        self._heard = 0.0
        self._optimizer: Optimizer | None = None
        self._state: InnerState | None = None
        self._closed = False
        self._trouble = ""  # the last warning
        #: What the training thread waits for: joined, evaluate, gradient, end; empty while it works.
        self.asked = ""

    def masters(self) -> dict[str, torch.Tensor]:
        masters: dict[str, torch.Tensor] = self._session.masters()
        return {name: masters[name] for name in self._parameters}

    def join(self, timeout: float | None) -> dict[str, Any]:
        """Starts, waits until the run is joined, and returns its description (Session::Describe).
        Afterwards all processes have the run's parameters."""
        found = self._shared(lambda: self._join(timeout))
        if self._state_dir is not None:
            self._state = InnerState(self._state_dir, found["run_id"], found["local_steps"])
        return found

    def attach(self, optimizer: Optimizer) -> None:
        """Loads the saved state into the optimizer."""
        self._optimizer = optimizer
        if self._state is None or optimizer.inner is None:
            return
        inner = self._state.load()
        if inner is not None:
            optimizer.load_state_dict(inner)

    def advance(self, loss: float) -> bool:
        """Answers the request with the loss of a step, or of an evaluation, and serves the training thread until it
        asks for another or ends. Returns whether a round ended. Afterwards all processes have the same module."""
        return bool(self._shared(lambda: self._advance(loss))["round_ended"])

    def samples(self, size: int) -> tuple[list[int], list[int]]:
        """The samples of the step; when a round begins, also those expected from this step on."""
        if self._ranks is None:
            return self._session.samples(size), self._session.expected(size)
        given: tuple[list[int], list[int]] = self._shared(
            lambda: {"samples": (self._session.samples(size), self._session.expected(size))}, tensors=False
        )["samples"]
        return given

    def held_out(self, size: int | None) -> tuple[int, int]:
        """Of a data set of this size, the first sample that is held out, and how many of them an evaluation reads.
        None: the program does not evaluate."""
        self._session.set_evaluates(size is not None)
        if size is None:
            return 0, 0
        given: tuple[int, int] = self._shared(lambda: {"samples": self._session.held_out(size)}, tensors=False)[
            "samples"
        ]
        return given

    def ending(self) -> tuple[str, str, str]:
        """The status with which the training thread ended: code, reason, message."""
        how: tuple[str, str, str] = self._session.ending()
        return how

    def memory(self) -> dict[str, Any]:
        held: dict[str, Any] = json.loads(self._session.describe_memory())
        return held

    def summary(self) -> dict[str, Any]:
        readings: dict[str, Any] = json.loads(self._session.summary())
        return readings

    def progress(self) -> str:
        """Of the last round, for people."""
        return str(self._session.progress())

    def save(self, model: torch.nn.Module, folder: str) -> None:
        save(model, self._session, folder)

    def close(self) -> None:
        self._closed = True
        self._session.close()
        while self.asked != "end":
            self._serve(self._wait())

    def _join(self, timeout: float | None) -> dict[str, Any]:
        code, reason, message = self._session.start()
        if code in ("INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED"):  # or a file that an argument names
            raise ValueError(in_python(message))
        if code != "OK":
            raise error_of(code, reason, message)
        end = None if timeout is None else time.monotonic() + timeout
        while self.asked == "":
            if end is not None and time.monotonic() > end:
                raise NotReachable(
                    f"no run was joined within {timeout} s" + (f": {self._trouble}" if self._trouble else "")
                )
            self._serve(self._wait())
        self._raise_if_failed()
        found: dict[str, Any] = json.loads(self._session.describe())
        return found

    def _advance(self, loss: float) -> dict[str, Any]:
        if self.asked in ("joined", "evaluate", "gradient"):
            self._session.answer(loss)
        self.asked = ""
        begins = True
        while self.asked == "":
            request = self._wait()
            begins = request[1]
            self._serve(request)
        self._raise_if_failed()
        return {"round_ended": begins or self.asked in ("evaluate", "end"), "asked": self.asked}

    def _shared(self, work: Any, tensors: bool = True) -> dict[str, Any]:
        """Calls work() and shares its result or error, and the module, with the other processes."""
        if self._ranks is None:
            alone: dict[str, Any] = work()
            return alone
        try:
            done: dict[str, Any] = work()
        except BaseException as error:
            told = error if isinstance(error, (Error, ValueError)) else Error(f"rank 0: {error!r}")
            with contextlib.suppress(Error):  # who has gone too need not hear it
                self._ranks.share({"error": told})
            raise
        self._ranks.share({"done": done})
        if tensors:
            self._ranks.share_tensors(self._parameters.values())
        return done

    def _wait(self) -> tuple[str, bool, float, int]:
        """The next request; empty after a short time without one, so that Python handles signals."""
        request: tuple[str, bool, float, int] = self._session.wait(_POLL_MILLISECONDS)
        for line in self._session.take_log():
            _, level, text = line.split(maxsplit=2)
            text = in_python(text.rstrip("\n"))
            _log.log(_LEVELS[level], "%s", text)
            if level in ("WARN", "ERROR"):
                self._trouble = text
        if self._ranks is not None and not self._closed and time.monotonic() > self._heard + _SIGN_OF_LIFE_SECONDS:
            self._ranks.share({})
            self._heard = time.monotonic()
        return request

    def _serve(self, request: tuple[str, bool, float, int]) -> None:
        kind, _, rate, local_steps = request
        if kind in ("joined", "evaluate", "gradient", "end"):
            self.asked = kind
        elif kind == "save":
            self._session.answer(self._keep(local_steps))
        elif kind and self._optimizer is not None:
            if kind == "step":
                self._optimizer.step_inner(rate)
            else:
                self._optimizer.reset_inner()
            self._session.answer(0.0)

    def _keep(self, local_steps: int) -> float:
        """Saves the inner optimizer's state. 1: done, or nothing to save; 0: it failed."""
        if self._optimizer is None or self._state is None:
            return 1.0  # nothing was stepped since it was kept
        try:
            self._state.save(local_steps, self._optimizer.state_dict())
        except OSError as error:
            _log.error("the inner optimizer's state was not kept: %s", error)
            return 0.0
        return 1.0

    def _raise_if_failed(self) -> None:
        if self.asked != "end" or self._closed:
            return
        code, reason, message = self.ending()
        if code != "OK":
            raise error_of(code, reason, message)
