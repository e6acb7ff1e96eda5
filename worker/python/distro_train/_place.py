"""Where a process of `distro-train local` belongs."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any

VARIABLE = "DISTRO_TRAIN_LOCAL"


@dataclasses.dataclass(frozen=True)
class Place:
    """A worker of a run on this machine; the environment of its process says so."""

    #: "127.0.0.1:PORT", plaintext.
    aggregator: str
    name: str
    #: Holds the state and the readings of all workers, until the run ends.
    folder: str
    #: Whether this worker writes what the program saves: they all have the same.
    saves: bool

    def environment(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(dataclasses.asdict(self))}

    def state_dir(self) -> str:
        return os.path.join(self.folder, f"state-{self.name}")

    def readings_path(self) -> pathlib.Path:
        return pathlib.Path(self.folder) / f"{self.name}.json"

    def keep(self, readings: dict[str, Any]) -> None:
        self.readings_path().write_text(json.dumps(readings))


def own_place() -> Place | None:
    """None: this process is not one of `distro-train local`. ValueError: the variable does not say what it should."""
    said = os.environ.get(VARIABLE)
    if said is None:
        return None
    try:
        place = Place(**json.loads(said))
    except (ValueError, TypeError):
        raise ValueError(f"{VARIABLE}: is set by distro-train local for its workers; unset it") from None
    if not place.aggregator.startswith("127.0.0.1:"):  # without TLS
        raise ValueError(f"{VARIABLE}: {place.aggregator!r} is not on this machine; unset it")
    return place
