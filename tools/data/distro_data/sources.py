"""Reads one input file as documents, cut into pieces, from any place on.

`pieces(place)` yields every Piece from `place` on; `place` is what an earlier piece said, or START. Reading needs the
memory of a few rows, or of a row group's column in a parquet file. InputError names file and line or row.
"""

import json
import os
import typing

from .errors import InputError
from .pieces import PIECE_BYTES, cut, first_piece

START = []
MAX_LINE_BYTES = 1 << 28


class Piece(typing.NamedTuple):
    text: bytes  # UTF-8; empty: a document without text
    ends: bool   # the last of its document
    place: list  # numbers: the start of the next piece
    done: int    # bytes of the file read so far, approximately


def check_utf8(text, where):
    """`where(offset)` names a byte of `text`."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise InputError(f"{where(wrong.start)}: is not UTF-8; convert it, as in: iconv -f LATIN1 -t UTF-8") from None


class File:
    def __init__(self, path):
        self.path = path
        self.size = os.stat(path).st_size


class TextFile(File):
    """The whole file is one document. Place: the byte."""

    def pieces(self, place):
        at = place[0] if place else 0
        with open(self.path, "rb") as file:
            file.seek(at)
            ahead = file.read(PIECE_BYTES + 1)
            if not ahead and at == 0:
                yield Piece(b"", True, [0], 0)
            while ahead:
                text = ahead[:first_piece(ahead)]
                check_utf8(text, lambda offset: f"{self.path}: byte {at + offset}")
                at += len(text)
                ahead = ahead[len(text):] + file.read(len(text))
                yield Piece(text, not ahead, [at], at)


class Rows(File):
    """A file of rows, each a document. Place: the subclass's numbers of the row, then the pieces of it that were read."""

    def __init__(self, path, field):
        super().__init__(path)
        self.field = field

    def pieces(self, place):
        skip = place[-1] if place else 0
        for text, name, here, after, done in self.rows(place[:-1]):
            if not text:
                yield Piece(b"", True, [*after, 0], done)
            else:
                check_utf8(text, lambda offset: f"{name}: byte {offset} of \"{self.field}\"")
                parts = list(cut(text))
                for number, part in enumerate(parts[skip:], skip + 1):
                    last = number == len(parts)
                    yield Piece(part, last, [*after, 0] if last else [*here, number], done)
            skip = 0


class JsonLines(Rows):
    """Numbers of a row: the byte where its line begins, and the lines before it. Blank lines are no rows."""

    def rows(self, place):
        at, line = place or (0, 0)
        with open(self.path, "rb") as file:
            file.seek(at)
            while raw := file.readline(MAX_LINE_BYTES + 1):
                name = f"{self.path}:{line + 1}"
                if len(raw) > MAX_LINE_BYTES:
                    raise InputError(f"{name}: the line is longer than {MAX_LINE_BYTES} bytes; is this JSON Lines, one object a line?")
                here, at, line = (at, line), at + len(raw), line + 1
                if raw.strip():
                    yield self.text_of(raw, name), name, here, (at, line), at

    def text_of(self, raw, name):
        check_utf8(raw, lambda offset: f"{name}: byte {offset} of the line")
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError) as wrong:
            raise InputError(f"{name}: is not JSON: {wrong}; every line must be one object") from None
        if not isinstance(row, dict):
            raise InputError(f"{name}: is not a JSON object, as in {{\"{self.field}\": \"...\"}}")
        if self.field not in row:
            raise InputError(f"{name}: has no field \"{self.field}\", it has {named(row)}; give --field")
        value = row[self.field]
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name}: field \"{self.field}\" is not a string; give --field")
        try:
            return (value or "").encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(f"{name}: field \"{self.field}\" has half a surrogate pair, which is not valid text; fix the line") from None


class Columns(Rows):
    """A column of Arrow batches. Number of a row: the rows before it."""

    def rows(self, place):
        import pyarrow  # slow to load, and text needs none of it
        skip = place[0] if place else 0
        try:
            for first, batch, done in self.batches(skip):
                column = batch.column(0).cast(pyarrow.large_binary())
                for row in range(first, first + len(column)):
                    if row >= skip:
                        yield column[row - first].as_py(), f"{self.path}: row {row}", (row,), (row + 1,), done
        except (pyarrow.ArrowException, OSError) as wrong:
            raise InputError(f"{self.path}: cannot be read: {wrong}; copy it again") from None

    def check(self, schema):
        """The place of the column in `schema`."""
        import pyarrow.types
        if schema.names.count(self.field) != 1:
            raise InputError(f"{self.path}: has no column \"{self.field}\", it has {named(schema.names)}; give --field")
        kind = schema.field(self.field).type
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise InputError(f"{self.path}: column \"{self.field}\" is of {kind}, not of strings; give --field")
        return schema.get_field_index(self.field)


class ParquetFile(Columns):
    def batches(self, skip):
        import pyarrow.parquet
        with pyarrow.parquet.ParquetFile(self.path, memory_map=True) as file:
            self.check(file.schema_arrow)
            first = 0
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if first + rows > skip:
                    at = first
                    for batch in file.iter_batches(row_groups=[group], columns=[self.field], batch_size=1024):
                        yield at, batch, self.size * at // file.metadata.num_rows
                        at += batch.num_rows
                first += rows


class ArrowFile(Columns):
    """One of a dataset's files: a stream of record batches."""

    def batches(self, skip):
        import pyarrow
        with pyarrow.memory_map(self.path) as mapped, pyarrow.ipc.open_stream(mapped) as stream:
            column = self.check(stream.schema)
            first = 0
            for batch in stream:
                if first + batch.num_rows > skip:
                    yield first, batch.select([column]), mapped.tell()
                first += batch.num_rows


def named(names):
    shown = [f'"{name}"' for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "") or "none"
