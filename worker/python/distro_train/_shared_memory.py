"""Memory of rank 0 that the other processes of its machine see too."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import secrets

import torch

from ._ranks import Ranks

_MFD_CLOEXEC = 1


def shared_zeros(elements: int, ranks: Ranks) -> torch.Tensor | None:
    """Float32 zeros in the host's memory of rank 0, which take memory once they are written: the same bytes in the
    processes that can map it, None in those that cannot, as on another machine or in another container. Every process
    calls it."""
    size, name = 4 * elements, f"distro_train_{secrets.token_hex(16)}"
    memory, path = None, ""
    with contextlib.ExitStack() as stack:
        if ranks.rank == 0:
            handle = _created(name, size)
            if handle >= 0:
                stack.callback(os.close, handle)
                path = f"/proc/{os.getpid()}/fd/{handle}"
            memory = mmap.mmap(handle, size)  # of this process alone if there is no file
        name, path = ranks.gather((name, path))[0]
        if ranks.rank > 0:
            memory = _mapped(path, name, size)
        ranks.barrier()  # all have opened it
    return None if memory is None else torch.frombuffer(memory, dtype=torch.float32)


def _created(name: str, size: int) -> int:
    """A file in no folder, unlike one in /dev/shm, which has 64 MB in a container. -1: it is refused."""
    # Many builds of Python have no os.memfd_create, which glibc has.
    handle: int = ctypes.CDLL(None).memfd_create(name.encode(), _MFD_CLOEXEC)
    if handle >= 0:
        try:
            os.ftruncate(handle, size)
        except OSError:  # the limit of a file's size
            os.close(handle)
            return -1
    return handle


def _mapped(path: str, name: str, size: int) -> mmap.mmap | None:
    """None: it is no file of a process that we see, or not ours to open."""
    try:
        if os.readlink(path) != f"/memfd:{name} (deleted)":  # the number is another process's here
            return None
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return mmap.mmap(handle, size)
        finally:
            os.close(handle)
    except OSError:
        return None
