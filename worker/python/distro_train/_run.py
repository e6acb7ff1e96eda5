"""The program's view of a joined run."""

from __future__ import annotations

import atexit
import contextlib
import math
import pathlib
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from ._errors import Error
from ._held_out import HeldOut, Loss, parts_of_held_out
from ._inner import Inner
from ._library import trainable
from ._memory import ParameterMemory
from ._module import Buffers, check, entries
from ._place import Place
from ._progress import Progress
from ._ranks import Ranks
from ._reader import Batch, Item, MapDataset, Reader, check_fingerprint, check_is_a_map, parts_of_step, parts_of_steps
from ._session import Session
from ._steps import LocalSteps

if TYPE_CHECKING:
    from ._sharded import Sharded

Result = TypeVar("Result")


class Run:
    """A run that this process takes part in, returned by `connect`. A context manager: leaving it
    closes the run. One thread uses it."""

    # Every rank goes through the same rounds here; what only rank 0 does with the C++ side is the session's.

    def __init__(
        self,
        session: Session | None,
        ranks: Ranks,
        model: torch.nn.Module,
        named_parameters: dict[str, torch.nn.Parameter],
        sharded: Sharded | None,
        fingerprint: str | None,
        token_file: str | None,
        on_round: Callable[[dict[str, Any]], None] | None,
        place: Place | None,
    ) -> None:
        self._local = place
        self._on_round = on_round
        self._session = session  # of rank 0
        self._ranks = ranks
        self._model = model
        self._sharded = sharded
        self._inner: Inner | None = None
        self._round: LocalSteps | None = None  # of a sharded module: every process takes them
        self._fingerprint = fingerprint
        self._own_token_file = token_file
        self._at_exit = _close_later(self)
        # Where a program drops the run without closing it, the other processes must not wait for signs of this one.
        weakref.finalize(self, ranks.close).atexit = False
        self._has_optimizer = False
        self._progress = Progress()
        self._buffers: Buffers | None = None
        self._reader: Reader[Any, Any] | None = None
        self._held_out: HeldOut | None = None
        self._closed = False
        self._position = (0, 0)  # the round that is trained, and the rounds of the run
        self._asked = ""  # joined, round, end; empty while rank 0 waits, and after an error
        self._steps = 0  # of the round that were taken
        self._batches = 0  # of the step: how many there are, which are given and stepped, their loss
        self._given = 0
        self._stepped = 0
        self._loss: float | None = None  # none in this process: only a pipeline's last stage has it
        #: Trained parameters by name: the module's own tensors.
        self.named_parameters = named_parameters
        #: What the inner optimizer steps, float32, by name in the same order: the module's own tensor
        #: where that is float32, else a master copy of it on its device.
        self.masters: dict[str, torch.Tensor] = dict(named_parameters)
        if session is not None and sharded is None:
            self.masters = session.masters(named_parameters)
        #: run.json with every default, as a dictionary.
        self.config: dict[str, Any] = {}
        #: Names of the tensors that Muon steps by default.
        self.muon: frozenset[str] = frozenset()
        #: Identity of the run: its name and a random suffix.
        self.run_id = ""

    @property
    def parameters(self) -> dict[str, ParameterMemory]:
        """The memory of each trained parameter in this process, by name."""
        held = {} if self._session is None else self._session.memory()
        return {name: ParameterMemory.of(value, held.get(name, {})) for name, value in self.named_parameters.items()}

    @property
    def done(self) -> bool:
        """Whether all rounds are over; then the module has the run's last parameters."""
        return self._asked == "end"

    @property
    def step(self) -> int:
        """How many local steps of the run come before the one that the next Optimizer.step takes, for a schedule of the
        program. The same in every process; it skips some after a round that had fewer than local_steps."""
        return self._position[0] * int(self.config.get("local_steps", 1)) + self._steps

    @property
    def steps(self) -> int:
        """The run's local steps, to which `distroctl run extend` may add."""
        return self._position[1] * int(self.config.get("local_steps", 1))

    def batches(
        self,
        dataset: MapDataset[Item],
        collate: Callable[[list[Item]], Batch],
        batch_size: int | None = None,
        held_out_loss: Callable[[Batch], torch.Tensor | float | None] | None = None,
    ) -> Iterator[Batch]:
        """The samples of this worker's steps, as batches, until the run is done.

        dataset        the same on every worker; its last held_out_fraction is never trained on
        collate        makes a batch of a list of samples
        batch_size     samples per batch, a divisor of those of a step; None: all of a step.
                       Gradients of smaller batches are accumulated; the last batch's `step` steps
        held_out_loss  the model's loss of such a batch, mean over its samples, nats a token; called for
                       the samples that are held out, without gradients and with the model in
                       evaluation, when run.json says: evaluation_interval_rounds, evaluation_samples.
                       None: this worker does not evaluate

        The data set and collate are called on a separate thread, ahead of the steps: for the rest of the
        round, and for the announced part of the next one; on a GPU on the stream that is current at the
        first batch. Each of several processes has an equal part of a step's samples.

        Call Optimizer.step once for each batch. Waits for the network. Error: the run ended. Raises
        what the data set raises. TypeError: the data set has no length or no index. ValueError: as
        `slots`, or the data set's fingerprint is not the one given to `connect`."""
        check_is_a_map(dataset)
        check_fingerprint(dataset, self._fingerprint)
        device = next(iter(self.named_parameters.values())).device
        with Reader(dataset, collate, device) as reader:
            self._reader = reader
            self._evaluate_with(held_out_loss, reader, len(dataset), batch_size)
            for samples in self._slots(len(dataset), batch_size, reader):
                yield reader.take(samples)

    def slots(self, size: int, batch_size: int | None = None) -> Iterator[list[int]]:
        """For programs that read by themselves: yields indices into a data set of `size` samples.

        ValueError: a batch_size that does not divide, or too few samples."""
        self._evaluate_with(None, None, size, batch_size)
        return self._slots(size, batch_size, None)

    def save(self, folder: str) -> None:
        """Writes the module with the run's parameters after the last applied round, f32, as a folder that opens as
        the module was made: a model of transformers or peft by its save_pretrained; any other as config.json and
        model.safetensors, which has its whole state dict. Each of several processes calls it, and rank 0 writes.
        OSError: it cannot be written."""
        if self._local is not None and not self._local.saves:
            return
        state = entries(self._model) if self._sharded is None else self._sharded.entries()
        if self._session is not None:
            self._session.save(self._model, state, folder)

    def summary(self) -> dict[str, Any]:
        """Readings of this process so far (docs/worker.md, "Summary"), and `batches`, the batches
        taken, with `batches_ahead`, how many of them were read ahead. Rank 0 has the worker's readings."""
        readings = {} if self._session is None else self._session.summary()
        if self._reader is not None:
            readings |= {"batches": self._reader.taken, "batches_ahead": self._reader.ahead}
        return readings

    def close(self) -> None:
        """Leaves the run and saves the state. The steps of an open round are saved as an update that the
        next process sends; those of a sharded module are dropped. Idempotent. Each of several processes
        calls it."""
        self._close(together=True)

    def _close(self, together: bool) -> None:
        if self._closed:
            return
        self._closed = True
        if not self.done:
            self._asked = ""
        atexit.unregister(self._at_exit)
        self._progress.close()
        if self._sharded is not None and together and self._ranks.open:
            with contextlib.suppress(Error):  # who has gone need not hear it
                self._ranks.of_first(self._session, lambda session: session.close(hand_in=False))
        elif self._session is not None:
            self._session.close(hand_in=self._sharded is None, keep=self._sharded is None)
        if self._session is not None and self._local is not None and self.run_id:
            self._local.keep(self.summary())
        self._ranks.close()
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
        self._close(together=kind is None)

    # The functions below are for this package.

    def begin(self, timeout: float | None) -> None:
        """Waits until the run is joined. OtherModel: what the module does not train is not that of the run."""
        self._asked, found, self._position = self._of_first(
            lambda session: (*session.join(timeout), session.position())
        )
        check(self._model, found["module"], self._ranks)
        self._buffers = Buffers(self._model)
        self.config, self.run_id = found["config"], found["run_id"]
        self.muon = frozenset(found["muon"])

    @property
    def processes(self) -> int:
        """Those of this worker."""
        return self._ranks.size

    @property
    def readers(self) -> int:
        """Its processes that read different samples."""
        return self._ranks.data_size

    @property
    def in_parts(self) -> bool:
        """Whether each process has a part of the module."""
        return self._sharded is not None

    def attach(self, inner: torch.optim.Optimizer | None) -> None:
        """Sets the run's inner optimizer, with its saved state; None with signs."""
        if self._has_optimizer:
            raise RuntimeError("the run has an optimizer already")
        self._has_optimizer = True
        if inner is not None:
            self._inner = Inner(inner) if self._sharded is None else self._sharded.inner(inner)
        held = None if self._session is None else self._session.attach(self._inner, self._sharded is not None)
        if self._inner is not None:
            self._inner.load(held)

    def take(self, loss: float | None) -> bool:
        """Implements Optimizer.step."""
        if self._stepped >= self._given:
            raise RuntimeError("take a batch from run.batches or run.slots before each step")
        if all(parameter.grad is None for parameter in self.named_parameters.values()):
            raise RuntimeError("no parameter of the run has a gradient: call loss.backward() before each step")
        self._stepped += 1
        if self._closed:
            return True
        if loss is not None:
            self._loss = loss + (self._loss or 0.0)
        if self._stepped < self._batches:
            return False
        if self._batches > 1:
            for parameter in self.named_parameters.values():
                if parameter.grad is not None:
                    parameter.grad.div_(self._batches)
        mean = self._ranks.mean(None if self._loss is None else self._loss / self._batches)
        self._steps += 1
        ended = self._step(mean)
        if ended:
            self._begin_round()
        self._clear_gradients()
        if ended and self._session is not None:
            self._progress.show(self._session.progress(), last=self.done)
            if self._on_round is not None:
                self._on_round(self.summary())
        return ended

    def _step(self, loss: float) -> bool:
        """A step along the gradients, of this mean loss. Returns whether it ended the round."""
        sharded = self._sharded
        if sharded is None:
            return self._ask(lambda session: session.step(loss)) != ""
        if self._inner is None or self._round is None:  # with signs the step is the run's
            sharded.gather_gradients()
            self._answer(loss)
            return True
        norm = sharded.clip(self._round.clip_norm)
        if math.isfinite(loss) and math.isfinite(norm):
            self._inner.step(self._round.rates[self._steps - 1])
        if self._ranks.of_first(self._session, lambda session: session.count(loss, norm)):
            return False
        sharded.gather()
        self._ask(lambda session: session.hand_in())
        return True

    def _slots(self, size: int, batch_size: int | None, reader: Reader[Any, Any] | None) -> Iterator[list[int]]:
        if not self._has_optimizer:
            raise RuntimeError("make distro_train.Optimizer(run) before the first batch")
        rank, ranks = self._ranks.data_rank, self._ranks.data_size
        if self._asked == "joined":
            self._answer(0.0)
            self._begin_round()
        self._clear_gradients()  # those of a step that an exception cut off
        while self._asked == "round":
            self._check_model()
            steps, expected, self._round = self._ranks.of_first(self._session, lambda session: session.samples(size))
            steps, of_step = steps[self._steps :], len(steps[0])
            if reader is not None:
                reader.expect(parts_of_steps(expected[self._steps * of_step :], of_step, rank, ranks, batch_size))
            for samples in steps:
                batches = parts_of_step(samples, rank, ranks, batch_size)
                self._batches, self._given, self._stepped, self._loss = len(batches), 0, 0, None
                for batch in batches:
                    self._given += 1
                    yield batch
                    if self._stepped != self._given:
                        raise RuntimeError(
                            "Optimizer.step was not called for the last batch: take the next one after it; the run "
                            "reads ahead by itself"
                        )
                if self._steps == 0 or self._asked != "round":  # the round has ended, or the run
                    break

    def _ask(self, work: Callable[[Session], str]) -> str:
        """Calls `work` at rank 0, which returns what is asked next, or nothing in the middle of a round. Afterwards all
        processes have the same module."""
        before, self._asked = self._asked, ""
        asked, position = self._of_first(lambda session: _asked_at(session, work(session)))
        self._asked, self._position = asked or before, position or self._position
        return asked

    def _of_first(self, work: Callable[[Session], Result]) -> Result:
        """Returns what `work` does at rank 0; afterwards all processes have the same module."""
        if self._sharded is None:
            return self._ranks.of_first(self._session, work, self.named_parameters.values())
        result = self._ranks.of_first(self._session, work)
        self._sharded.scatter()
        return result

    def _answer(self, loss: float) -> None:
        self._ask(lambda session: session.answer(loss))

    def _begin_round(self) -> None:
        """Evaluates, where that is asked before the next round or the end. With overlap 1 the run still needs the last
        gradient."""
        self._steps = 0
        if self._buffers is not None:
            self._buffers.restore()
        while self._asked == "evaluate":
            assert self._held_out is not None  # otherwise the training thread was told that nobody evaluates
            self._answer(self._ranks.mean(self._held_out.evaluate()) * self._ranks.data_size)

    def _clear_gradients(self) -> None:
        for parameter in self.named_parameters.values():
            parameter.grad = None

    def _evaluate_with(
        self, loss: Loss | None, reader: Reader[Any, Any] | None, size: int, batch_size: int | None
    ) -> None:
        self._held_out = None
        if loss is None or reader is None:
            if self._session is not None:
                self._session.held_out(None)
            return
        first, count = self._ranks.of_first(self._session, lambda session: session.held_out(size))
        if count > 0:  # none is held out: the training thread does not ask
            rank, ranks = self._ranks.data_rank, self._ranks.data_size
            batch = batch_size or max(1, self.config["samples_per_worker"] // ranks)
            self._held_out = HeldOut(self._model, loss, reader, parts_of_held_out(first, count, batch, rank, ranks))

    def _check_model(self) -> None:
        """RuntimeError: the module trains other parameters than when it was given to `connect`."""
        if self._sharded is not None:
            self._sharded.reshard()
        current = dict(zip(*trainable(self._model)))
        for name in (*current, *self.named_parameters):
            if current.get(name) is not self.named_parameters.get(name):
                raise RuntimeError(
                    f"model: {name!r} was added, replaced, frozen or unfrozen after connect, and the run would not "
                    "notice: change the module before"
                )


def _asked_at(session: Session, asked: str) -> tuple[str, tuple[int, int] | None]:
    return asked, session.position() if asked else None


def _close_later(run: Run) -> Callable[[], None]:
    """Registers, and returns, a function that closes the run when the interpreter ends."""
    held = weakref.ref(run)

    def close() -> None:
        alive = held()
        if alive is not None:
            alive._close(together=alive.done)  # after an error the other processes may wait elsewhere

    atexit.register(close)
    return close
