"""Files as the C++ side opens and writes them (common/base/file_calls.h): nothing waits for a named pipe, nothing is
written through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Iterator
from typing import BinaryIO


def open_to_read(path: pathlib.Path) -> BinaryIO:
    """A regular file. OSError: there is none, or it is a folder, a named pipe, a socket or a device."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # does not wait for the writer of a pipe
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return os.fdopen(handle, "rb")


@contextlib.contextmanager
def written_atomically(path: pathlib.Path) -> Iterator[BinaryIO]:
    """What is written into the file stands at `path` afterwards, durably; after an error nothing has changed there.
    OSError: it could not be written."""
    part = path.with_name(path.name + ".tmp")
    part.unlink(missing_ok=True)  # of a crash, or a link that somebody put there
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: pathlib.Path) -> None:
    """Makes a file's content, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        # A file system that cannot: the C++ side has warned of it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(handle)
