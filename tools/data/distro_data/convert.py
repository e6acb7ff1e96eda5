"""A whole conversion: inputs to an output folder with shards, boundaries and index.

The output depends on the inputs' bytes, the tokenizer and the flags that name it, and on nothing else: pieces are encoded
by themselves and written in order, however many processes encode them and however often it was interrupted.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import time

from . import consumed, shards
from .encoders import Tokenizer
from .errors import FinishedError, InputError
from .pool import encode_all
from .progress import Progress, size
from .streams import line, say

INDEX = "index.json"
PROGRESS = "progress.json"
CONVERSION = 1  # raise it when a change of cutting or encoding gives other tokens for the same input
UNIT_BYTES = 1 << 20
CHECKPOINT_SECONDS = 10


@dataclasses.dataclass
class Options:
    out: str
    files: list           # of sources
    tokenizer: Tokenizer
    field: str
    shard_tokens: int
    processes: int


@dataclasses.dataclass
class Unit:
    """The work that a process encodes at once."""
    pieces: list = dataclasses.field(default_factory=list)  # (text, ends its document)
    names: list = dataclasses.field(default_factory=list)   # of the pieces' documents
    records: dict = dataclasses.field(default_factory=dict)  # of the files that it is of, by number, as of its end
    size: int = 0
    empty: int = 0      # documents without text
    place: list = None  # (number of a file, place in it) of the next unit
    done: int = 0       # bytes of all files before `place`


def units(files, place, record=None):
    """The units of `files` from a unit's `place` on, [] is the start; `record` is that of a file that was begun. An InputError comes
    after the unit of what was read before it."""
    number, *inner = place or [0]
    unit = Unit()
    before = sum(file.size for file in files[:number])
    try:
        for number in range(number, len(files)):
            record = record or consumed.begin(files[number])
            for piece in files[number].pieces(inner):
                consumed.add(record, piece)
                if piece.text:
                    unit.pieces.append((piece.text, piece.ends))
                    unit.names.append(piece.name)
                    unit.size += len(piece.text)
                else:
                    unit.empty += 1
                unit.place, unit.done, unit.records[number] = [number, *piece.place], before + piece.done, record.copy()
                if unit.size >= UNIT_BYTES:
                    yield unit
                    unit = Unit()
            before += files[number].size
            unit.place, unit.done, unit.records[number] = [number + 1], before, record
            inner, record = [], None
    except InputError:
        if unit.place:
            yield unit
        raise
    if unit.place:
        yield unit


def settings(options):
    """The settings that must be the same for a conversion to continue."""
    tokenizer = options.tokenizer
    return {"conversion": CONVERSION, "field": options.field, "tokenizer": [tokenizer.kind, tokenizer.sha256, tokenizer.library],
            "end_token": tokenizer.end_token, "shard_tokens": options.shard_tokens}


@contextlib.contextmanager
def own(folder):
    """Creates the folder and locks it for this process."""
    try:
        os.makedirs(folder, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"--out: {folder} is, or lies in, a file; give a folder") from None
    except OSError as wrong:
        raise InputError(f"--out: {folder}: {wrong.strerror}; give a folder that can be written") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"--out: another distro-data works in {folder}") from None
        except OSError as wrong:
            raise InputError(f"--out: {folder}: its file system has no locks (flock: {wrong.strerror}); give a folder on another") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"--out: {folder}: cannot be written; give a folder that can")
        yield
    finally:
        os.close(lock)


def load_state(options):
    """The state that an earlier process left, or that of a new conversion. FinishedError, InputError: the folder cannot be used."""
    def path(name):
        return os.path.join(options.out, name)
    begin = {"settings": settings(options), "inputs": [], "place": [], "done": 0, "empty": 0, "writer": None}
    if not os.path.exists(path(PROGRESS)):
        if os.path.exists(path(INDEX)):
            raise FinishedError(f"{path(INDEX)} is finished, nothing was done; to convert again give another --out")
        if left := [name for name in os.listdir(options.out) if name != PROGRESS + ".new"]:
            raise InputError(f"--out: {options.out} holds {sorted(left)[0]} and no conversion; give an empty or a new folder")
        shards.save(path(PROGRESS), begin)
        return begin
    try:
        with open(path(PROGRESS), encoding="utf-8") as file:
            state = json.load(file)
        other = [f"{key}: {state['settings'].get(key)}, and now {value}" for key, value in begin["settings"].items()
                 if state["settings"].get(key) != value]
        if "inputs" not in state:
            state["inputs"] = consumed.of_older(state["settings"], state["place"])
    except (ValueError, KeyError, AttributeError, TypeError):
        raise InputError(f"{path(PROGRESS)}: is damaged; empty the folder and begin again") from None
    if other:
        raise InputError(f"--out: {options.out} holds an unfinished conversion with another {', '.join(other)}; finish that with what it"
                         " was begun with, or give another --out")
    if os.path.exists(path(INDEX)):  # ended between the last two steps
        forget(options.out)
        raise FinishedError(f"{path(INDEX)} is finished")
    consumed.continue_in(options.files, state)
    return state


def convert(options):
    """Starts or continues a conversion. Returns the index and the number of empty documents. After an interruption, the same call continues."""
    with own(options.out):
        state = load_state(options)
        if state["writer"]:
            say(line(f"continuing at {size(state['done'])} of {size(sum(file.size for file in options.files))}"))
        writer = shards.Writer(options.out, options.tokenizer.token_bytes, options.shard_tokens, state["writer"])
        with contextlib.closing(writer):
            try:
                encode(options, state, writer)
            except InputError as wrong:
                checkpoint(options, state, writer)
                raise InputError(f"{wrong}; then the same command continues where this one ended") from None
            writer.finish()
        if writer.tokens == 0:
            raise InputError("the inputs hold no text: there is no token to write")
        index = make_index(options, writer)
        shards.save(os.path.join(options.out, INDEX), index)
        forget(options.out)
        return index, state["empty"]


def forget(folder):
    """Removes the files of an unfinished conversion; last the one that load_state looks for."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, PROGRESS + ".new"))
    os.remove(os.path.join(folder, PROGRESS))


def encode(options, state, writer):
    progress = Progress("encoding", sum(file.size for file in options.files), state["done"])
    saved = time.monotonic()
    begun = state["inputs"][-1].copy() if state["place"][1:] else None
    for unit, tokens, ends in encode_all(units(options.files, state["place"], begun), options.tokenizer, options.processes):
        empty, whole = writer.write(tokens, ends)
        state["empty"] += unit.empty + empty
        state["place"], state["done"] = unit.place, unit.done
        for number, record in unit.records.items():
            state["inputs"][number:] = [record]
        progress.update(unit.done, writer.tokens)
        if whole or time.monotonic() - saved > CHECKPOINT_SECONDS:
            checkpoint(options, state, writer)
            saved = time.monotonic()
    progress.end()
    for file, record in zip(options.files, state["inputs"]):
        if how := consumed.changed(file, record):
            raise InputError(f"{file.path}: changed while it was read: {how}; wait until it is whole")


def checkpoint(options, state, writer):
    shards.save(os.path.join(options.out, PROGRESS), {**state, "writer": writer.checkpoint()})


def make_index(options, writer):
    tokenizer = options.tokenizer
    progress = Progress("reading for the fingerprint", writer.tokens * tokenizer.token_bytes)
    done = 0

    def count(read):
        nonlocal done
        done += read
        progress.update(done)
    fingerprint = shards.fingerprint(options.out, writer.shards, tokenizer.token_bytes, count)
    progress.end()
    return {"format": "distro-tokens", "version": 1, "dtype": f"uint{8 * tokenizer.token_bytes}",
            "vocabulary_size": tokenizer.vocabulary_size, "tokens": writer.tokens, "fingerprint": fingerprint,
            "tokenizer": {"kind": tokenizer.kind, "sha256": tokenizer.sha256, "end_token": tokenizer.end_token},
            "documents": writer.documents_entry(), "shards": writer.shards}
