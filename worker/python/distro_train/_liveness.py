"""Whether the processes of a worker live, also while each of them waits in an operation of another."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

import torch

_log = logging.getLogger("distro_train")

_SECONDS_BETWEEN_SIGNS = 3.0
_SILENCE_SECONDS = 40.0  # after which a process counts as gone
_EXIT_STATUS = 10  # rank_failed (docs/worker.md)
_LEFT = 1 << 40  # added to the count of a process that has left


class Liveness:
    """A thread of each process counts in the store of torch.distributed. Rank 0 watches all, and the others watch
    rank 0 and hear from it who is gone. Where one is, the rest end with status 10: nothing else interrupts a thread
    that waits in an operation of NCCL or gloo. Their states are those of the last save. A process that ends by itself
    or by a signal is gloo's to notice, or the launcher's; one in which something keeps Python's lock counts as stopped.

    name  of these processes in the store"""

    def __init__(self, rank: int, size: int, name: str) -> None:
        self._rank = rank
        self._gone = ""  # who, as rank 0 says
        self._watched = [other for other in range(size) if other != rank] if rank == 0 else [0]
        self._counts = dict.fromkeys(self._watched, 0)
        self._answered = time.monotonic()  # when the store did
        self._heard = dict.fromkeys(self._watched, self._answered)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        store: Any = torch.distributed.distributed_c10d._get_default_store()
        try:
            # A connection of its own: in the program's, one that waits holds up all others.
            self._store = torch.distributed.distributed_c10d.PrefixStore(f"distro_train/{name}", store.clone())
        except RuntimeError as error:  # a store that the program made itself need not have this
            _log.warning("nothing notices where a process of this worker is stopped: %s", error)
            return
        for work in (self._exchange_signs, self._watch):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        """This process leaves, and nobody waits for its signs any more. Idempotent."""
        self._ended.set()
        for thread in self._threads:
            if thread is not threading.current_thread():  # which may collect garbage, a run among it
                thread.join(_SECONDS_BETWEEN_SIGNS)  # as long only if the store does not answer

    def _exchange_signs(self) -> None:
        try:
            while not self._ended.wait(_SECONDS_BETWEEN_SIGNS):
                self._store.add(str(self._rank), 1)
                for other in self._watched:
                    count = self._store.add(str(other), 0)
                    if count != self._counts[other]:
                        self._counts[other], self._heard[other] = count, time.monotonic()
                if self._gone:
                    self._store.set("gone", self._gone)
                elif self._store.check(["gone"]):
                    self._end(self._store.get("gone").decode())
                self._answered = time.monotonic()
            self._store.add(str(self._rank), _LEFT)
        except RuntimeError as error:  # the process that has the store has ended
            if not self._ended.is_set():
                _log.warning("nothing notices any more where a process of this worker is stopped: %s", error)
            self._ended.set()

    def _watch(self) -> None:
        """A thread of its own, since a call of the store waits as long as its server is stopped."""
        looked = time.monotonic()
        while not self._ended.wait(_SECONDS_BETWEEN_SIGNS):
            now = time.monotonic()
            if now > looked + 3 * _SECONDS_BETWEEN_SIGNS:  # this process was stopped itself
                self._answered, self._heard = now, dict.fromkeys(self._watched, now)
            looked = now
            if now > self._answered + _SILENCE_SECONDS:
                self._end(
                    f"the store of torch.distributed has not answered for {_SILENCE_SECONDS:.0f} s: the process that "
                    "has it, a launcher or rank 0, is stopped or cut off"
                )
            for other in self._watched:
                if self._counts[other] < _LEFT and self._answered > self._heard[other] + _SILENCE_SECONDS:
                    reason = f"rank {other} of this worker has given no sign of life for {_SILENCE_SECONDS:.0f} s"
                    if self._rank == 0:
                        self._gone = reason
                        self._ended.wait(3 * _SECONDS_BETWEEN_SIGNS)  # until the others have read it
                    self._end(reason)

    def _end(self, reason: str) -> None:
        if not self._ended.is_set():  # else an operation has failed by itself, and the program handles that
            _log.error("%s: this process ends; the state is that of the last save", reason)
            os._exit(_EXIT_STATUS)
