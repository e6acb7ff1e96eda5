"""A run that was joined, from the side of the program."""

from __future__ import annotations

import atexit
import json
import logging
import pathlib
import time
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from ._errors import NotReachable, error_of
from ._memory import ParameterMemory
from ._state import InnerState

if TYPE_CHECKING:
    from ._optimizer import Optimizer

_log = logging.getLogger("distro_train")
_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
_POLL_MILLISECONDS = 100  # between looks at signals while the C++ side works

Sample = TypeVar("Sample", covariant=True)
Item = TypeVar("Item")
Batch = TypeVar("Batch")


class MapDataset(Protocol[Sample]):
    """A map-style data set: torch.utils.data.Dataset with a length, a list, ..."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


class Run:
    """A run that this process takes part in, made by `connect`. A context manager: leaving it closes
    it. One thread uses it."""

    def __init__(
        self,
        session: Any,
        named_parameters: dict[str, torch.nn.Parameter],
        state_dir: str | None,
        token_file: str | None,
    ) -> None:
        self._session = session
        self._at_exit = _close_later(self)
        self._state_dir = state_dir
        self._own_token_file = token_file
        self._optimizer: Optimizer | None = None
        self._state: InnerState | None = None
        self._asked = ""  # what the training thread waits for: joined, gradient, end
        self._closed = False
        self._batches = 0  # of the step: how many there are, which are given and stepped, their loss
        self._given = 0
        self._stepped = 0
        self._loss = 0.0
        #: Trained parameters by name: the module's own tensors.
        self.named_parameters = named_parameters
        #: What the inner optimizer steps, float32, by name in the same order: the module's own tensor
        #: where that is float32, else a master copy of it on its device.
        self.masters = _masters(session, named_parameters)
        #: run.json with every default, as a dictionary.
        self.config: dict[str, Any] = {}
        #: Names of the tensors that Muon steps by default.
        self.muon: frozenset[str] = frozenset()
        #: Name of the run, and what it was created as.
        self.run_id = ""

    @property
    def parameters(self) -> dict[str, ParameterMemory]:
        """Which memory holds which trained parameter, by name."""
        held = json.loads(self._session.describe_memory())
        return {
            name: ParameterMemory.of(parameter, held[name])
            for name, parameter in self.named_parameters.items()
        }

    @property
    def done(self) -> bool:
        """All rounds are over, and the module has the run's last parameters."""
        return self._asked == "end" and self._session.ending()[0] == "OK"

    def batches(
        self,
        dataset: MapDataset[Item],
        collate: Callable[[list[Item]], Batch],
        batch_size: int | None = None,
    ) -> Iterator[Batch]:
        """The samples of this worker's steps, as batches, until the run is done.

        dataset     the same on every worker; the last held_out_fraction of it is never given
        collate     called with a list of samples, makes a batch of them
        batch_size  samples of a batch, which must divide those of a step; None: all of a step's.
                    Smaller ones are accumulated: `step` steps with the last

        Call Optimizer.step once for each. Waits for the network. Error: the run ended."""
        for samples in self.slots(len(dataset), batch_size):
            yield collate([dataset[i] for i in samples])

    def slots(self, size: int, batch_size: int | None = None) -> Iterator[list[int]]:
        """The same for programs that read by themselves: indices into a data set of `size` samples.

        ValueError: a batch_size that does not divide, or too few samples."""
        if self._optimizer is None:
            raise RuntimeError("make distro_train.Optimizer(run) before the first batch")
        if self._asked == "joined":
            self._advance()
        while self._asked == "gradient":
            samples: list[int] = self._session.samples(size)
            batch = len(samples) if batch_size is None else batch_size
            if batch < 1 or len(samples) % batch != 0:
                raise ValueError(f"batch_size: {batch} does not divide the {len(samples)} samples of a step")
            self._batches, self._given, self._stepped, self._loss = len(samples) // batch, 0, 0, 0.0
            for first in range(0, len(samples), batch):
                self._given += 1
                yield samples[first : first + batch]
                if self._stepped != self._given:
                    raise RuntimeError("Optimizer.step was not called for the last batch")

    def save(self, folder: str) -> None:
        """Writes the run's parameters as they are after the last round that was applied, in the Hugging
        Face layout: config.json and model.safetensors, f32. OSError: it cannot be written."""
        code, _, message = self._session.save(folder)
        if code != "OK":
            raise OSError(message)

    def summary(self) -> dict[str, Any]:
        """Readings of this process so far (docs/worker.md, "Summary")."""
        readings: dict[str, Any] = json.loads(self._session.summary())
        return readings

    def close(self) -> None:
        """Leaves the run and keeps the state. What was stepped of a round that is not over is kept as
        an update that the next process sends. Idempotent."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._session.close()
        while self._asked != "end":
            self._serve(self._wait())
        if self._own_token_file is not None:
            pathlib.Path(self._own_token_file).unlink(missing_ok=True)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What follows is for this package.

    def begin(self, timeout: float | None) -> None:
        """Waits until the run is joined."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._asked == "":
            if end is not None and time.monotonic() > end:
                raise NotReachable(f"no run was joined within {timeout} s")
            self._serve(self._wait())
        self._raise_if_failed()
        found = json.loads(self._session.describe())
        self.config, self.run_id = found["config"], found["run_id"]
        self.muon = frozenset(found["muon"])
        if self._state_dir is not None:
            self._state = InnerState(self._state_dir, self.run_id, found["local_steps"])

    def attach(self, optimizer: Optimizer) -> None:
        """The run has its optimizer, which goes on with the state that is kept."""
        if self._optimizer is not None:
            raise RuntimeError("the run has an optimizer already")
        self._optimizer = optimizer
        if self._state is None or optimizer.inner is None:
            return
        inner = self._state.load()
        if inner is not None:
            optimizer.load_state_dict(inner)

    def take(self, loss: float) -> bool:
        """Optimizer.step."""
        if self._stepped >= self._given:
            raise RuntimeError("take a batch from run.batches or run.slots before each step")
        self._stepped += 1
        self._loss += loss
        if self._stepped < self._batches:
            return False
        if self._batches > 1:
            for parameter in self.named_parameters.values():
                if parameter.grad is not None:
                    parameter.grad.div_(self._batches)
        self._finish_devices()
        self._session.answer(self._loss / self._batches)
        return self._advance()

    def _finish_devices(self) -> None:
        """What this thread enqueued is done: the C++ side reads it on streams of its own."""
        for device in {parameter.device for parameter in self.named_parameters.values()}:
            if device.type != "cpu":
                torch.accelerator.synchronize(device)

    def _advance(self) -> bool:
        """Serves the training thread until it asks for a gradient or has ended; whether a round ended."""
        if self._asked == "joined":
            self._session.answer(0.0)
        self._asked = ""
        begins = True
        while self._asked == "":
            request = self._wait()
            begins = request[1]
            self._serve(request)
        for parameter in self.named_parameters.values():
            parameter.grad = None
        self._raise_if_failed()
        return begins or self._asked == "end"

    def _wait(self) -> tuple[str, bool, float, int]:
        """What is asked; empty when nothing is for a while, so that signals are seen."""
        request: tuple[str, bool, float, int] = self._session.wait(_POLL_MILLISECONDS)
        for line in self._session.take_log():
            _, level, text = line.split(maxsplit=2)
            _log.log(_LEVELS[level], "%s", text.rstrip("\n"))
        return request

    def _serve(self, request: tuple[str, bool, float, int]) -> None:
        kind, _, rate, local_steps = request
        if kind in ("joined", "gradient", "end"):
            self._asked = kind
        elif kind == "save":
            self._session.answer(self._keep(local_steps))
        elif kind and self._optimizer is not None:
            if kind == "step":
                self._optimizer.step_inner(rate)
            else:
                self._optimizer.reset_inner()
            self._finish_devices()
            self._session.answer(0.0)

    def _keep(self, local_steps: int) -> float:
        """1: the inner optimizer's state is kept."""
        if self._optimizer is None or self._state is None:
            return 1.0  # nothing was stepped since it was kept
        try:
            self._state.save(local_steps, self._optimizer.state_dict())
        except OSError as error:
            _log.error("the inner optimizer's state was not kept: %s", error)
            return 0.0
        return 1.0

    def _raise_if_failed(self) -> None:
        if self._asked != "end" or self._closed:
            return
        code, reason, message = self._session.ending()
        if code != "OK":
            raise error_of(code, reason, message)


def _masters(session: Any, named_parameters: dict[str, torch.nn.Parameter]) -> dict[str, torch.Tensor]:
    masters: dict[str, torch.Tensor] = session.masters()
    return {name: masters[name] for name in named_parameters}


def _close_later(run: Run) -> Callable[[], None]:
    """Closes the run when the interpreter ends, if it is still there."""
    held = weakref.ref(run)

    def close() -> None:
        alive = held()
        if alive is not None:
            alive.close()

    atexit.register(close)
    return close
