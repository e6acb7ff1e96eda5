"""What of the inputs is converted, so that a conversion continues with inputs that were repaired behind it.

A record for each file that was begun has its size and time, and how many of its pieces were converted, with a chain of hashes
of them. A file of the same size and time is the same. Another one is read again, and its first pieces must be those; what
comes behind them may be anything.
"""

import datetime
import hashlib
import itertools
import os

from .errors import InputError
from .sources import START
from .streams import line, say


def begin(file):
    """The record of a file of which nothing is read yet."""
    about = os.stat(file.path)
    return {"path": os.path.abspath(file.path), "size": about.st_size, "time": about.st_mtime_ns, "pieces": 0, "sha256": ""}


def add(record, piece):
    if record["pieces"] is None:  # of a conversion that an older distro-data began
        return
    record["pieces"] += 1
    record["sha256"] = hashlib.sha256(record["sha256"].encode() + (b"1" if piece.ends else b"0") + piece.text).hexdigest()


def of_older(settings, place):
    """The records in place of which an older distro-data kept size and time of all files."""
    begun = place[0] + (len(place) > 1) if place else 0
    return [{"path": path, "size": size, "time": time, "pieces": None, "sha256": None} for path, size, time in settings["inputs"][:begun]]


def changed(file, record):
    """None, or how the file differs from its record, in words."""
    now = begin(file)
    if all(now[key] == record[key] for key in ("path", "size", "time")):
        return None
    moved = "" if now["path"] == record["path"] else f"it was {record['path']}, "
    return f"{moved}it had {record['size']} bytes of {date(record['time'])}, and has {now['size']} of {date(now['time'])}"


def date(nanoseconds):
    return datetime.datetime.fromtimestamp(nanoseconds / 1e9, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def continue_in(files, state):
    """Changes the place of `state` to that in `files` behind what was converted. InputError: they begin with something else."""
    records = state["inputs"]
    if len(records) > len(files):
        raise InputError(f"{records[len(files)]['path']}: is converted, and is no input of this command; give the same inputs, or another --out")
    for number, (file, record) in enumerate(zip(files, records)):
        if how := changed(file, record):
            last = number == len(records) - 1
            piece = read_again(file, record, how, last)
            if last:  # it may have more by now
                state["place"] = [number, *(piece.place if piece else START)]
                state["done"] = sum(before.size for before in files[:number]) + (piece.done if piece else 0)
            records[number] = {**begin(file), "pieces": record["pieces"], "sha256": record["sha256"]}


def read_again(file, record, how, last):
    """The last piece that was converted; None: there is none. InputError: the file begins with other pieces."""
    other = InputError(f"{file.path}: another text was converted of it: {how}; give it as it was, or convert anew with another --out")
    if record["pieces"] is None:
        raise other
    say(line(f"{file.path}: {how}; reading it again, to compare what is converted"))
    pieces = file.pieces(START)
    now, piece = begin(file), None
    for piece in itertools.islice(pieces, record["pieces"]):
        add(now, piece)
    same = now["sha256"] == record["sha256"]
    if not same or (not last and next(pieces, None)):
        raise other
    return piece
