"""Reads one input file as documents, cut into pieces, from any place on.

`check()` looks at what can be known before work begins. `pieces(place)` yields every Piece from `place` on; `place` is what
an earlier piece said, or START. Reading needs the memory of a few rows, or of a row group's column in a parquet file.
InputError names file and line or row.
"""

import json
import os
import stat
import typing

from .errors import InputError
from .foreign import HEAD_BYTES, refuse_foreign
from .pieces import PIECE_BYTES, cut, first_piece

START = []
MAX_LINE_BYTES = 1 << 28
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8: Windows writes it before a text, of which it is no part


class Piece(typing.NamedTuple):
    text: bytes  # UTF-8; empty: a document without text
    ends: bool   # the last of its document
    place: list  # numbers: the start of the next piece
    done: int    # bytes of the file read so far, approximately
    name: str    # of the document, for messages


def regular_file(path, wanted):
    """InputError: it is none; `wanted` says what is."""
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; {wanted}") from None
    except OSError as wrong:
        raise InputError(f"{path}: {wrong.strerror}; {wanted}") from None
    if not stat.S_ISREG(kind):
        raise InputError(f"{path}: is not a regular file, which can be read again when a conversion continues; {wanted}")


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

    def check(self):
        """InputError: the file cannot be read, or begins with something else."""
        try:
            with open(self.path, "rb") as file:
                refuse_foreign(self.path, file.read(HEAD_BYTES), may_be_page=isinstance(self, TextFile))
        except OSError as wrong:
            raise self._unread(wrong) from None
        self._check_content()

    def _check_content(self):
        next(self.pieces(START), None)

    def pieces(self, place):
        try:
            yield from self._pieces(place)
        except OSError as wrong:
            raise self._unread(wrong) from None

    def _unread(self, wrong):
        return InputError(f"{self.path}: cannot be read: {wrong.strerror or wrong}")


class TextFile(File):
    """The whole file is one document. Place: the byte."""

    def _pieces(self, place):
        with open(self.path, "rb") as file:
            at = place[0] if place else len(BYTE_ORDER_MARK) * (file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK)
            file.seek(at)
            ahead = file.read(PIECE_BYTES + 1)
            if not ahead and not place:
                yield Piece(b"", True, [at], at, self.path)
            while ahead:
                text = ahead[:first_piece(ahead)]
                check_utf8(text, lambda offset: f"{self.path}: byte {at + offset}")
                name = f"{self.path}: from byte {at}"
                at += len(text)
                ahead = ahead[len(text):] + file.read(len(text))
                yield Piece(text, not ahead, [at], at, name)


class Rows(File):
    """A file of rows, each a document. Place: the subclass's numbers of the row, then the pieces of it that were read."""

    def __init__(self, path, field):
        super().__init__(path)
        self.field = field

    def _pieces(self, place):
        skip = place[-1] if place else 0
        for text, name, here, after, done in self.rows(place[:-1]):
            if not text:
                yield Piece(b"", True, [*after, 0], done, name)
            else:
                check_utf8(text, lambda offset: f"{name}: byte {offset} of \"{self.field}\"")
                parts = list(cut(text))
                for number, part in enumerate(parts[skip:], skip + 1):
                    last = number == len(parts)
                    yield Piece(part, last, [*after, 0] if last else [*here, number], done, name)
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
                if line == 1:
                    raw = raw.removeprefix(BYTE_ORDER_MARK)
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
        texts = [key for key, value in row.items() if isinstance(value, str)]
        if self.field not in row:
            raise InputError(f"{name}: has no field \"{self.field}\", it has {named(row)}; give --field")
        value = row[self.field]
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name}: field \"{self.field}\" is {KINDS[type(value)]}, not a string; {other_field(texts)}")
        try:
            return (value or "").encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(f"{name}: field \"{self.field}\" has half a surrogate pair, which is not valid text; fix the line") from None


KINDS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


class Columns(Rows):
    """A column of Arrow batches. Number of a row: the rows before it. Files are not mapped: one that is shortened meanwhile would end
    this process."""

    def _check_content(self):
        import pyarrow  # slow to load, and text needs none of it
        try:
            self.check_schema()
        except (pyarrow.ArrowException, OSError) as wrong:
            raise self._damaged(wrong) from None

    def rows(self, place):
        import pyarrow
        skip = place[0] if place else 0
        try:
            for first, batch, done in self.batches(skip):
                column = batch.column(0).cast(pyarrow.large_binary())
                for row in range(first, first + len(column)):
                    if row >= skip:
                        yield column[row - first].as_py(), f"{self.path}: row {row}", (row,), (row + 1,), done
        except (pyarrow.ArrowException, OSError) as wrong:
            raise self._damaged(wrong) from None

    def _damaged(self, wrong):
        return InputError(f"{self.path}: cannot be read: {wrong}; copy it again")

    def column(self, schema):
        """The place of the column in `schema`."""
        if schema.names.count(self.field) != 1:
            raise InputError(f"{self.path}: has no column \"{self.field}\", it has {named(schema.names)}; give --field")
        kind = schema.field(self.field).type
        if not is_text(kind):
            texts = [field.name for field in schema if is_text(field.type)]
            raise InputError(f"{self.path}: column \"{self.field}\" is of {kind}, not of text; {other_field(texts)}")
        return schema.get_field_index(self.field)


def is_text(kind):
    """Whether values of this Arrow type are text: strings and, as many programs write them, bytes; in a dictionary (a category of
    pandas) or an extension (arrow.json), too. A column in which all is null has no type of its own."""
    import pyarrow
    import pyarrow.types
    while isinstance(kind, (pyarrow.DictionaryType, pyarrow.BaseExtensionType)):
        kind = kind.value_type if isinstance(kind, pyarrow.DictionaryType) else kind.storage_type
    kinds = pyarrow.types
    return any(of(kind) for of in (kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_binary, kinds.is_large_binary,
                                   kinds.is_binary_view, kinds.is_null))


class ParquetFile(Columns):
    def check_schema(self):
        import pyarrow.parquet
        with pyarrow.parquet.ParquetFile(self.path) as file:
            self.column(file.schema_arrow)

    def batches(self, skip):
        import pyarrow.parquet
        with pyarrow.parquet.ParquetFile(self.path) as file:
            self.column(file.schema_arrow)
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

    def check_schema(self):
        import pyarrow
        with pyarrow.OSFile(self.path) as file, pyarrow.ipc.open_stream(file) as stream:
            self.column(stream.schema)

    def batches(self, skip):
        import pyarrow
        with pyarrow.OSFile(self.path) as file, pyarrow.ipc.open_stream(file) as stream:
            column = self.column(stream.schema)
            first = 0
            for batch in stream:
                if first + batch.num_rows > skip:
                    yield first, batch.select([column]), file.tell()
                first += batch.num_rows


def named(names):
    shown = [f'"{name}"' for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "") or "none"


def other_field(texts):
    return f"give --field with one that is: {named(texts)}" if texts else "write its text to a field of its own"
