"""distro-data that is killed, as by kill -9, before its Nth sync, rename or removal. usage: killed.py N ARGUMENT...

A checkpoint follows every unit, and units are small, so that there are many places to be killed at. Processes of the pool
begin with another main module and are as always.
"""

import os
import signal
import sys

if __name__ == "__main__":
    from distro_data import command_line, convert

    convert.CHECKPOINT_SECONDS = -1
    convert.UNIT_BYTES = 100
    left = int(sys.argv[1])

    def killing(call):
        def instead(*arguments):
            global left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments)
        return instead

    os.fsync, os.replace, os.remove = killing(os.fsync), killing(os.replace), killing(os.remove)
    sys.exit(command_line.main(sys.argv[2:]))
