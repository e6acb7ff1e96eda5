"""Reads batches ahead of their use."""

from __future__ import annotations

import concurrent.futures
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import torch

Sample = TypeVar("Sample", covariant=True)
Item = TypeVar("Item")
Batch = TypeVar("Batch")

_AHEAD = 8  # batches that are read and not taken


class MapDataset(Protocol[Sample]):
    """A map-style data set: torch.utils.data.Dataset with a length, a list, ..."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


class Fingerprinted(Protocol):
    """A data set with a fingerprint."""

    @property
    def fingerprint(self) -> str: ...


class Reader(Generic[Item, Batch]):
    """Reads and collates on its own thread, the only one that uses the data set. It reads the expected
    batches ahead, in order and a few at a time, and any other batch when it is taken. What it does on
    `device`, the model's, is on the stream that is current where the Reader is made, in order with the
    program's work.

    A context manager: leaving it drops the batches that were not taken. One thread uses it."""

    def __init__(self, dataset: MapDataset[Item], collate: Callable[[list[Item]], Batch], device: torch.device) -> None:
        self._dataset = dataset
        self._collate = collate
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "distro-train-reader", initializer=_same_stream(device))
        self._expected: list[tuple[int, ...]] = []
        self._begun: OrderedDict[tuple[int, ...], concurrent.futures.Future[Batch]] = OrderedDict()
        #: Batches taken, and how many of them were read ahead.
        self.taken = self.ahead = 0

    def expect(self, batches: Iterable[Sequence[int]]) -> None:
        """Announces the batches that will probably be taken next, in this order. Batches expected
        earlier that are not among them are dropped."""
        self._expected = [tuple(batch) for batch in batches]
        wanted = set(self._expected)
        for batch in [batch for batch in self._begun if batch not in wanted]:
            self._begun.pop(batch).cancel()
        self._begin_more()

    def take(self, samples: Sequence[int]) -> Batch:
        """The batch of these samples. Raises what the data set or collate raises."""
        key = tuple(samples)
        reading = self._begun.pop(key, None)
        self.taken += 1
        self.ahead += reading is not None and reading.done()
        if key in self._expected:
            del self._expected[: self._expected.index(key) + 1]
        if reading is None:
            reading = self._thread.submit(self._read, key)
        self._begin_more()
        return reading.result()

    def read(self, samples: Sequence[int]) -> Batch:
        """The same of samples that are not read ahead."""
        return self._thread.submit(self._read, tuple(samples)).result()

    def _begin_more(self) -> None:
        for batch in self._expected:
            if len(self._begun) >= _AHEAD:
                return
            if batch not in self._begun:
                self._begun[batch] = self._thread.submit(self._read, batch)

    def _read(self, samples: tuple[int, ...]) -> Batch:
        return self._collate([self._dataset[i] for i in samples])

    def __enter__(self) -> Reader[Item, Batch]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _same_stream(device: torch.device) -> Callable[[], object]:
    """For another thread: makes this thread's current stream of the device the other's too."""
    if device.type == "cpu":
        return lambda: None
    return functools.partial(torch.accelerator.set_stream, torch.accelerator.current_stream(device))


def parts_of_step(samples: Sequence[int], rank: int, ranks: int, batch_size: int | None) -> list[list[int]]:
    """The batches of one process; the processes share a step's samples evenly.

    ValueError: they do not divide."""
    if len(samples) % ranks != 0:
        raise ValueError(
            f"the {len(samples)} samples of a step do not divide over {ranks} processes: "
            "start as many as divide samples_per_worker of run.json"
        )
    own = len(samples) // ranks
    batch = own if batch_size is None else batch_size
    if batch < 1 or own % batch != 0:
        raise ValueError(f"batch_size: {batch} does not divide the {own} samples of a step")
    return [list(samples[first : first + batch]) for first in range(rank * own, (rank + 1) * own, batch)]


def parts_of_steps(
    samples: Sequence[int], of_step: int, rank: int, ranks: int, batch_size: int | None
) -> list[list[int]]:
    """The same for several steps with `of_step` samples each; an incomplete last step is left out."""
    batches: list[list[int]] = []
    for first in range(0, len(samples) - of_step + 1, of_step):
        batches += parts_of_step(samples[first : first + of_step], rank, ranks, batch_size)
    return batches


def check_is_a_map(dataset: Any) -> None:
    """TypeError: the data set decides itself what is read next."""
    remedy = "the run says which samples are read: give "
    if isinstance(dataset, torch.utils.data.DataLoader):
        raise TypeError(
            f"dataset: is a DataLoader, and {remedy}its parts, as run.batches(loader.dataset, loader.collate_fn)"
        )
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise TypeError(
            f"dataset: a {type(dataset).__name__} has no length and no index, and {remedy}one that has both, such as "
            "a list of its samples"
        )


def check_fingerprint(dataset: Any, said: str | None) -> None:
    """ValueError: the data set's fingerprint is not the one given to `connect`."""
    own = getattr(dataset, "fingerprint", None)
    if said is not None and isinstance(own, str) and own != said:
        raise ValueError(f"dataset.fingerprint: {own!r} is not {said!r}, which connect was given")
