"""Encodes units in several processes and returns the results in the order of the units. A bounded number is in progress.

A thread of this process has one of its own and waits for it, so that the end of a process, which a tokenizer may cause, is
seen at once and with the unit that it had. (concurrent.futures' pool of processes hangs then, in Python 3.11.)
"""

import collections
import concurrent.futures
import multiprocessing
import os
import signal
import threading

from .encoders import Encoder, limit_memory
from .errors import EncodeError, InputError, ProcessError


def _serve(connection, tokenizer):
    """Runs in the other process, until this one closes the connection or ends."""
    for number in (signal.SIGHUP, signal.SIGINT):  # what a terminal sends to all, the first process handles
        signal.signal(number, signal.SIG_IGN)
    encoder = Encoder(tokenizer)
    limit_memory()
    try:
        while True:
            pieces = connection.recv()
            try:
                result = encoder.encode(pieces)
            except EncodeError as wrong:
                result = wrong
            connection.send(result)
    except (EOFError, OSError):
        pass
    except MemoryError:
        os._exit(1)


class _Process:
    def __init__(self, tokenizer):
        context = multiprocessing.get_context("spawn")  # a forked one would keep the others' connections
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, tokenizer), daemon=True)
        self.process.start()
        other.close()

    def encode(self, pieces):
        """EncodeError; ProcessError: the process ended."""
        try:
            self.connection.send(pieces)
            result = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
            raise ProcessError(f"a process that encodes {how}, most often for want of memory; give fewer --processes") from None
        if isinstance(result, EncodeError):
            raise result
        return result

    def close(self):
        self.connection.close()
        self.process.join()


class _Pool:
    """As many processes, each with a thread."""

    def __init__(self, processes, tokenizer):
        self.tokenizer = tokenizer
        self.own = threading.local()
        self.processes = []
        self.threads = concurrent.futures.ThreadPoolExecutor(processes)

    def submit(self, unit):
        try:
            return self.threads.submit(self._encode, unit)
        except RuntimeError as wrong:  # of the threading module
            raise ProcessError(f"{wrong}; give fewer --processes") from None

    def _process(self):
        if not hasattr(self.own, "process"):
            self.own.process = _Process(self.tokenizer)
            self.processes.append(self.own.process)
        return self.own.process

    def _encode(self, unit):
        try:
            return self._process().encode(unit.pieces)
        except EncodeError as wrong:
            raise self._refused(unit, *wrong.args) from None
        except ProcessError:
            self._find_deadly(unit)
            raise

    def _find_deadly(self, unit):
        """InputError: a document of `unit` ends the process that encodes it, and nothing else."""
        process = _Process(self.tokenizer)
        process.encode([])
        for number, piece in enumerate(unit.pieces):
            try:
                process.encode([piece])
            except (EncodeError, ProcessError):
                raise self._refused(unit, number, "it ends the process that encodes it, most often for want of memory") from None
        process.close()

    def _refused(self, unit, number, reason):
        return InputError(f"{unit.names[number]}: the tokenizer {self.tokenizer.path} fails at this document: {reason}; take it out of the"
                          " input, or convert anew with another tokenizer")

    def close(self):
        self.threads.shutdown(wait=True, cancel_futures=True)
        for process in self.processes:
            process.close()


def encode_all(units, tokenizer, processes):
    """Yields (unit, tokens, ends) for every unit, which has `pieces` and their `names`. An error comes after the results of the units
    before it: an InputError of `units`, or of a document that cannot be encoded; ProcessError: a process died."""
    if processes == 1 and tokenizer.kind == "bytes":  # of which no text is too much
        encoder = Encoder(tokenizer)
        for unit in units:
            yield unit, *encoder.encode(unit.pieces)
        return
    pool = _Pool(processes, tokenizer)
    waiting = collections.deque()
    try:
        for unit, wrong in _until_error(units):
            if unit:
                waiting.append((unit, pool.submit(unit)))
            while waiting and (not unit or len(waiting) > 2 * processes):
                first, future = waiting.popleft()
                yield first, *future.result()
            if wrong:
                raise wrong
    finally:
        pool.close()


def _until_error(units):
    """(unit, None) for every unit, then (None, the InputError that ended them or None)."""
    try:
        for unit in units:
            yield unit, None
    except InputError as wrong:
        yield None, wrong
    else:
        yield None, None
