"""The files of an output folder: shards of tokens, document boundaries, and the state needed to continue after an end at any
moment.

    writer = Writer(folder, token_bytes=2, shard_tokens=1 << 27)
    writer.write(tokens, ends)
    save(folder / "progress.json", {"writer": writer.checkpoint(), ...})   # another process can continue from here
    writer = Writer(folder, 2, 1 << 27, state["writer"])                   # which truncates what came after
"""

import array
import hashlib
import json
import os

from .errors import InputError

DOCUMENTS = "documents.u64"
CHUNK_BYTES = 1 << 22


class HashedFile:
    """An append-only file with the SHA-256 of its content."""

    def __init__(self, path, size=None):
        """Continues after `size` bytes of an existing file. InputError: it has fewer."""
        self.path = path
        self.hash = hashlib.sha256()
        self.size = 0
        if size is None:
            self.file = open(path, "wb")
            return
        try:
            self.file = open(path, "r+b")
        except FileNotFoundError:
            raise InputError(f"{path}: is missing; empty the folder and begin again") from None
        while self.size < size:
            chunk = self.file.read(min(CHUNK_BYTES, size - self.size))
            if not chunk:
                raise InputError(f"{path}: has {self.size} bytes, {size} were written; empty the folder and begin again")
            self.hash.update(chunk)
            self.size += len(chunk)
        self.file.truncate(size)
        self.file.seek(size)

    def write(self, data):
        self.file.write(data)
        self.hash.update(data)
        self.size += len(data)

    def sync(self):
        self.file.flush()
        os.fsync(self.file.fileno())


class Writer:
    def __init__(self, folder, token_bytes, shard_tokens, state=None):
        self.folder = folder
        self.token_bytes = token_bytes
        self.shard_tokens = shard_tokens
        state = state or {"shards": [], "open_tokens": None, "documents": None}
        self.shards = state["shards"]  # complete shards, as in the index
        self.tokens = sum(shard["tokens"] for shard in self.shards) + (state["open_tokens"] or 0)
        self.end = 0  # of the last document
        self.shard = None
        if state["open_tokens"] is not None:
            self.shard = HashedFile(self._path(self._name()), state["open_tokens"] * token_bytes)
        documents = state["documents"]
        self.documents = HashedFile(self._path(DOCUMENTS), documents and documents["bytes"])
        if documents:
            self.end = documents["end"]

    def write(self, tokens, ends):
        """`tokens`: an array; `ends`: places in it where documents end. A document without a token is left out. Returns their
        number, and whether a shard was completed."""
        empty = 0
        for end in ends:
            if self.tokens + end == self.end:
                empty += 1
                continue
            self.end = self.tokens + end
            self.documents.write(array.array("Q", [self.end]).tobytes())
        whole = False
        rest = memoryview(tokens).cast("B")
        while rest:
            if self.shard is None:
                self.shard = HashedFile(self._path(self._name()))
            room = self.shard_tokens * self.token_bytes - self.shard.size
            self.shard.write(rest[:room])
            rest = rest[room:]
            if self.shard.size == self.shard_tokens * self.token_bytes:
                self._close_shard()
                whole = True
        self.tokens += len(tokens)
        return empty, whole

    def checkpoint(self):
        """The state of the writer. The disk holds at least what it says."""
        if self.shard is not None:
            self.shard.sync()
        self.documents.sync()
        sync_folder(self.folder)
        return {"shards": self.shards, "open_tokens": self.shard and self.shard.size // self.token_bytes,
                "documents": {"bytes": self.documents.size, "end": self.end}}

    def finish(self):
        """Completes the last shard, however short."""
        if self.shard is not None:
            self._close_shard()
        self.documents.sync()

    def close(self):
        for file in (self.shard, self.documents):
            if file is not None:
                file.file.close()

    def documents_entry(self):
        return {"name": DOCUMENTS, "count": self.documents.size // 8, "sha256": self.documents.hash.hexdigest()}

    def _close_shard(self):
        self.shard.sync()
        self.shard.file.close()
        self.shards.append({"name": self._name(), "tokens": self.shard.size // self.token_bytes,
                            "sha256": self.shard.hash.hexdigest()})
        self.shard = None

    def _name(self):
        return f"shard-{len(self.shards):05}.u{8 * self.token_bytes}"

    def _path(self, name):
        return os.path.join(self.folder, name)


def fingerprint(folder, shards, token_bytes, on_bytes):
    """SHA-256 of the number of tokens (u64) and every token (u32), little-endian: TokenSource::Fingerprint of the worker.
    `on_bytes(n)` after every n bytes that were read."""
    import pyarrow
    digest = hashlib.sha256(sum(shard["tokens"] for shard in shards).to_bytes(8, "little"))
    for shard in shards:
        with open(os.path.join(folder, shard["name"]), "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                tokens = len(chunk) // token_bytes
                if token_bytes == 2:
                    narrow = pyarrow.Array.from_buffers(pyarrow.uint16(), tokens, [None, pyarrow.py_buffer(chunk)])
                    digest.update(memoryview(narrow.cast(pyarrow.uint32()).buffers()[1])[:4 * tokens])
                else:
                    digest.update(chunk)
                on_bytes(len(chunk))
    return digest.hexdigest()


def save(path, value):
    """JSON, atomically: after an end at any moment the file is the old or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    sync_folder(os.path.dirname(path))


def sync_folder(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
