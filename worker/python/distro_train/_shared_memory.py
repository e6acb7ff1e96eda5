"""Memory of rank 0 that the other processes of its machine see too."""

from __future__ import annotations

import mmap
import os
import secrets

import torch

from ._ranks import Ranks


def shared_zeros(elements: int, ranks: Ranks) -> torch.Tensor | None:
    """Float32 zeros in the host's memory of rank 0: the same bytes in the processes that can open it, None in those
    that cannot, as on another machine or in another container. Every process calls it. OSError: no memory."""
    bytes_ = 4 * elements
    name = f"distro_train_{secrets.token_hex(16)}"
    handle = None
    if ranks.rank == 0:
        handle = os.memfd_create(name)  # unlike /dev/shm, which has 64 MB in a container
        os.ftruncate(handle, bytes_)
    name, path = ranks.gather((name, f"/proc/{os.getpid()}/fd/{handle}"))[0]
    if ranks.rank > 0:
        handle = _opened(path, name)
    shared = None if handle is None else torch.frombuffer(mmap.mmap(handle, bytes_), dtype=torch.float32)
    ranks.barrier()  # all have opened it
    if handle is not None:
        os.close(handle)
    return shared


def _opened(path: str, name: str) -> int | None:
    """None: it is no file of a process that we see, or not ours to open."""
    try:
        if os.readlink(path) != f"/memfd:{name} (deleted)":  # the number is another process's here
            return None
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
