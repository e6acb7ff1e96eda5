"""The progress bar of a run."""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import time
from typing import Any

_log = logging.getLogger("distro_train")
_LOG_SECONDS = 10  # between lines of the log


def _bar(rounds: int, done: int) -> Any:
    """A bar of tqdm, where that is installed and stderr is a terminal; else None."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    try:
        tqdm = importlib.import_module("tqdm")
    except ImportError:
        return None
    return tqdm.tqdm(total=rounds, initial=done, unit="round", dynamic_ncols=True)


class Progress:
    """Shows that `done` of `rounds` rounds are over."""

    def __init__(self, rounds: int, done: int) -> None:
        self._rounds = rounds
        self._done = done
        self._logged = time.monotonic()
        self._bar = _bar(rounds, done)

    def round_ended(self, loss: float) -> None:
        self._done += 1
        if self._bar is not None:
            self._show(loss)
        elif time.monotonic() >= self._logged + _LOG_SECONDS:
            self._logged = time.monotonic()
            _log.info("round %d of %d, loss %.4f", self._done, self._rounds, loss)

    def _show(self, loss: float) -> None:
        try:
            self._bar.update(1)
            self._bar.set_postfix(loss=f"{loss:.4f}")
        except OSError:  # the terminal was closed: the run goes on
            self._bar = None

    def close(self) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError):
                self._bar.close()
