"""distro-data that is killed, as by kill -9, before its Nth sync, rename or removal. usage: killed.py N ARGUMENT...

A checkpoint follows every unit, and units are small, so that there are many places to be killed at. Processes of the pool
begin with another main module and are as always.
"""

import os
import signal
import sys

import pyarrow  # noqa: F401  once, not in every fork

from distro_data import command_line, convert


def kill_before(call):
    """In this process, from now on."""
    convert.CHECKPOINT_SECONDS = -1
    convert.UNIT_BYTES = 100
    left = call

    def killing(real):
        def instead(*arguments):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)
        return instead

    os.fsync, os.replace, os.remove = killing(os.fsync), killing(os.replace), killing(os.remove)


def run_fork(arguments, before=None):
    """The exit status of a fork that converts; with `before` it is killed before that call. It takes no time to start, and
    is for conversions without libraries that have threads: bytes of text or JSON Lines, with --processes 1."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            if before is not None:
                kill_before(before)
            code = command_line.main([str(argument) for argument in arguments])
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    kill_before(int(sys.argv[1]))
    sys.exit(command_line.main(sys.argv[2:]))
