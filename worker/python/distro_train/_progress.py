"""What a program shows of a run without any set-up."""

from __future__ import annotations

import logging
import sys
import time

_log = logging.getLogger("distro_train")
_LIVE_SECONDS = 0.2  # between lines on a terminal, each in the place of the one before
_LOG_SECONDS = 10  # between lines of the log


def show_log() -> None:
    """The lines of the log go to stderr, as long as the program has not set logging up."""
    if _log.hasHandlers() or sys.stderr is None:
        return
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: not logging.getLogger().handlers)
    handler.setFormatter(logging.Formatter(("\r\x1b[K" if _is_terminal() else "") + "distro_train: %(message)s"))
    _log.addHandler(handler)
    if _log.level == logging.NOTSET:
        _log.setLevel(logging.INFO)


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """Shows lines about the rounds of a run: on a terminal one live line, elsewhere a line of the log now and then."""

    def __init__(self) -> None:
        self._live = _is_terminal()
        self._next = 0.0
        self._open = False

    def show(self, line: str, last: bool) -> None:
        """`last`: nothing comes after it, so it is shown whatever was before."""
        now = time.monotonic()
        if now < self._next and not last:
            return
        self._next = now + (_LIVE_SECONDS if self._live else _LOG_SECONDS)
        if self._live:
            self._write("\r\x1b[K" + line)
        else:
            _log.info("%s", line)

    def close(self) -> None:
        if self._open:
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
            self._open = True
        except (OSError, ValueError, AttributeError):  # the terminal was closed: the run goes on
            self._live = False
