"""The results of the first quarter of an hour on a GPU: a folder with a JSON file for each part, replaced as a whole whenever a step has ended.

    {"schema": 1, "part": "tests", "hardware": {"gpu": ..., "gpus": 1, "memory_mib": ..., "driver": ..., "cpu": ..., "cores": ...},
     "date": "2026-12-01", "version": "of the first step, of a later one", "complete": false, "steps": {NAME: outcome of steps.py}}

All files of a folder are of the same GPU.
"""
import json
import os

SCHEMA = 1
FIELDS = {"schema": int, "part": str, "hardware": dict, "date": str, "version": str, "complete": bool, "steps": dict}
HARDWARE = {"gpu": str, "gpus": int, "memory_mib": int, "driver": str, "cpu": str, "cores": int}
OUTCOME = {"state": str, "why": str, "status": (int, type(None)), "seconds": (int, float), "rows": list, "tail": str, "stack": str}
STATES = ("passed", "failed", "hung", "skipped")


class Refused(Exception):
    """Results that cannot be used, with the reason."""


def check(document, name):
    """Refuses what does not have the form above."""
    _check_fields(document, FIELDS, name)
    _check_fields(document["hardware"], HARDWARE, f"{name}: hardware")
    if document["schema"] != SCHEMA:
        raise Refused(f"{name}: schema {document['schema']} is not {SCHEMA}")
    if document["part"] != name:
        raise Refused(f"{name}: the file is of the part '{document['part']}'")
    for step, outcome in document["steps"].items():
        _check_fields(outcome, OUTCOME, f"{name}: {step}")
        if outcome["state"] not in STATES:
            raise Refused(f"{name}: {step}: there is no state '{outcome['state']}'")


def _check_fields(found, wanted, name):
    if not isinstance(found, dict) or found.keys() != wanted.keys():
        raise Refused(f"{name}: has not the keys {', '.join(wanted)}")
    for key, kind in wanted.items():
        if not isinstance(found[key], kind):
            raise Refused(f"{name}: {key} is {found[key]!r}")


def failures(document):
    """(step, reason) of each step that failed or hung."""
    return [(step, outcome["why"]) for step, outcome in document["steps"].items() if outcome["state"] in ("failed", "hung")]


def rows(document):
    """All rows of a part; none without it."""
    return [row for outcome in (document or {"steps": {}})["steps"].values() for row in outcome["rows"]]


class Results:
    """A folder of results; made when the first is stored."""

    def __init__(self, folder):
        self.folder = folder

    def load(self, part):
        """The part's document; None where there is none."""
        path = self.folder / f"{part}.json"
        if not path.exists():
            return None
        try:
            document = json.loads(path.read_text())
        except ValueError as error:
            raise Refused(f"{path}: {error}") from None
        check(document, part)
        return document

    def store(self, document):
        check(document, document["part"])
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{document['part']}.json"
        unfinished = path.with_suffix(".unfinished")
        with open(unfinished, "w") as file:
            file.write(json.dumps(document, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)

    def require_one_gpu(self, parts, hardware=None):
        """The GPU of all results; refuses those of different GPUs, or of others than `hardware`. None where there are no results."""
        found = {part: document["hardware"] for part in parts if (document := self.load(part))}
        if hardware:
            found["this machine"] = hardware
        kinds = {}
        for name, one in found.items():
            kinds.setdefault((one["gpu"], one["gpus"], one["memory_mib"]), []).append(name)
        if len(kinds) > 1:
            told = "; ".join(f"{gpus} {gpu} of {memory} MiB: {', '.join(names)}" for (gpu, gpus, memory), names in kinds.items())
            raise Refused(f"{self.folder}: results of different GPUs are not mixed ({told}); name another folder with --out")
        return next(iter(found.values()), None)
