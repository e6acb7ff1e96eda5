"""The inner optimizer's state as files in a worker's state folder (docs/files.md).

`inner-<steps>.pt` belongs to the state file of the C++ side that has taken that many local steps.
The last two are kept, so that every state file that a crash may leave has its counterpart."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

import torch

from . import _files

_log = logging.getLogger("distro_train")


class InnerState:
    """`restored`: local steps of the state from which the run continues; 0: none."""

    def __init__(self, folder: str, run_id: str, restored: int) -> None:
        self._folder = pathlib.Path(folder)
        self._run_id = run_id
        self._kept = restored

    def _path(self, steps: int) -> pathlib.Path:
        return self._folder / f"inner-{steps}.pt"

    def load(self) -> dict[str, Any] | None:
        """The inner optimizer's state that belongs to the restored state. None: there is none; logs a line."""
        if self._kept == 0:
            return None
        path = self._path(self._kept)
        try:
            with _files.open_to_read(path) as file:
                held = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # torch.load has no error of its own for a damaged file
            _log.warning("the inner optimizer begins anew: %s: %s", path, error)
            return None
        if held.get("run_id") != self._run_id or held.get("steps") != self._kept:
            _log.warning("the inner optimizer begins anew: %s is of another run or step", path)
            return None
        state: dict[str, Any] = held["inner"]
        return state

    def save(self, steps: int, inner: dict[str, Any]) -> None:
        """Writes it durably and atomically. OSError: it could not be written; then nothing of it stays."""
        path = self._path(steps)
        try:
            with _files.written_atomically(path) as file:
                torch.save({"run_id": self._run_id, "steps": steps, "inner": inner}, file)
        except RuntimeError as error:  # torch.save's where a write fails
            raise OSError(str(error)) from error
        wanted = {path, self._path(self._kept)}
        for old in self._folder.glob("inner-*"):
            if old not in wanted:
                old.unlink(missing_ok=True)
        self._kept = steps
