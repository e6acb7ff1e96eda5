"""The standard streams: closed ones, and readers that end before the program does."""

import contextlib
import os
import sys

from .shown import shown


def prepare():
    """Closed streams become the null device, so that no file gets their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if number == 0 else "w"))


def say(text, stream=None):
    """Writes for people: whoever does not read it any more does not stop the work."""
    stream = stream or sys.stderr
    with contextlib.suppress(OSError):
        stream.write(text)
        stream.flush()


def line(message):
    """A line of a message, in which what is not seen, of names and values of others, is escaped."""
    return shown(str(message)) + "\n"


def finish(code):
    """The exit code, once the results are written. One who ended before that has read enough: `| head -1`."""
    try:
        sys.stdout.flush()
        return code
    except OSError as wrong:
        return code or unwritten(wrong)


def unwritten(wrong):
    """The exit code where the results could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for the flush at the end
    if isinstance(wrong, BrokenPipeError):
        return 0
    say(f"distro-data: standard output: {wrong.strerror}\n")
    return 1
