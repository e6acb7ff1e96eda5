"""The command distro-train."""

from __future__ import annotations

import argparse
import pathlib
import shutil
import sys

from ._local import LocalRun, Refused

_DESCRIPTION = """Starts an aggregator and several workers of one program on this machine, to try a run before others
are invited. Each worker is a process of the program, in this folder, with these arguments; what the program prints
comes behind the worker's name.

  distro-train local --workers 3 --rounds 20 train.py --data input.txt

In these processes distro_train.connect takes address and name from here, whatever the program gives: no invite, no TLS,
no token. A state_dir is a temporary one of each worker. The first worker writes what Run.save saves."""

_EPILOG = """exit codes: 0 every worker ended well, with the same parameters; 1 one did not; 2 the run cannot be
started as told; 130 interrupted."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="distro-train", description="Tools of the Python package distro-train.")
    local = parser.add_subparsers(required=True).add_parser(
        "local",
        help="try a program with several workers on this machine",
        usage="distro-train local [--workers N] [--rounds N] [--run FILE] [--model DIR] "
        "[--aggregator_program FILE] [-m] program.py ...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    local.add_argument(
        "--workers", type=int, default=3, metavar="N", help="1 to 64 (default 3); the run starts with all"
    )
    local.add_argument("--rounds", type=int, metavar="N", help="instead of those of run.json, with its learning rates")
    local.add_argument("--run", type=pathlib.Path, default=pathlib.Path("run.json"), help="default: run.json")
    local.add_argument(
        "--model",
        type=pathlib.Path,
        default=pathlib.Path("initial"),
        help="folder of distro_train.save_initial (default: initial)",
    )
    local.add_argument("--aggregator_program", metavar="FILE", help="default: the distro-aggregator on PATH")
    local.add_argument("-m", action="store_true", dest="module", help="the program is a module's name, as of python -m")
    local.add_argument("program", type=pathlib.Path, help="Python program that calls distro_train.connect")
    local.add_argument("arguments", nargs=argparse.REMAINDER, help="its own")
    given = parser.parse_args()
    try:
        run = LocalRun(
            aggregator=given.aggregator_program or shutil.which("distro-aggregator"),
            config=given.run,
            model=given.model,
            workers=given.workers,
            rounds=given.rounds,
            program=given.program,
            module=given.module,
            arguments=given.arguments,
        )
    except Refused as error:
        print(f"distro-train: {error}", file=sys.stderr)
        return 2
    return run.run()


if __name__ == "__main__":
    sys.exit(main())
