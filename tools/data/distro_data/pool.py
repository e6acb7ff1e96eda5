"""Encodes units in several processes and returns the results in the order of the units. A bounded number is in progress."""

import collections
import concurrent.futures
import concurrent.futures.process
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading

from .encoders import Encoder
from .errors import ProcessError

_encoder = None  # of a process of the pool


def _begin(tokenizer):
    """Runs in a process of the pool. It ignores interrupts, which the first process handles, and ends when that process ends."""
    global _encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _encoder = Encoder(tokenizer)


def _end_with_parent():
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _encode(pieces):
    return _encoder.encode(pieces)


def encode_all(units, tokenizer, processes):
    """Yields (unit, tokens, ends) for every unit, which has `pieces`. ProcessError: a process died."""
    if processes == 1:
        encoder = Encoder(tokenizer)
        for unit in units:
            yield unit, *encoder.encode(unit.pieces)
        return
    context = multiprocessing.get_context("spawn")  # forked ones would keep each other's pipes, and outlive the first
    pool = concurrent.futures.ProcessPoolExecutor(processes, context, _begin, (tokenizer,))
    waiting = collections.deque()
    try:
        for unit in units:
            waiting.append((unit, pool.submit(_encode, unit.pieces)))
            if len(waiting) > 2 * processes:
                unit, future = waiting.popleft()
                yield unit, *future.result()
        for unit, future in waiting:
            yield unit, *future.result()
    except concurrent.futures.process.BrokenProcessPool:
        raise ProcessError("a process that encodes was killed, most often for want of memory; give fewer --processes") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
