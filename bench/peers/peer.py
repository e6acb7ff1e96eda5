"""Shared by the peers. Each runs in its own virtual environment, times rounds of W processes on this machine, and prints a line of JSON.

    NAME.py --workers 8 --up_bytes 1765926 --down_bytes 11050000 --rounds 3
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTORCH = ("bench-python", ("torch==2.11.0", "numpy"))  # the one that bench/reference_ratio.py uses


def enter_environment(name, packages):
    """Restarts this program in the virtual environment .deps/NAME, and makes it if it is missing."""
    folder = ROOT / ".deps" / name
    if pathlib.Path(sys.prefix) == folder:
        return
    complete = folder / "peers.stamp"
    if not complete.exists():
        if not (folder / "bin/pip").exists():
            # Symlinks: a copy over an environment's link to the system's Python would be written into that.
            venv.create(folder, with_pip=True, symlinks=True, clear=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", *packages], check=True, stdout=sys.stderr)
        complete.touch()
    os.execv(folder / "bin/python", [folder / "bin/python", "-B", *sys.argv])


def parse_arguments(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--up_bytes", type=int, required=True, help="bytes of a worker's update")
    parser.add_argument("--down_bytes", type=int, required=True, help="bytes of the result, for peers that have one")
    parser.add_argument("--rounds", type=int, required=True, help="timed rounds; one more is run first")
    return parser.parse_args()


def report(sent, received, seconds, processor_seconds, server_seconds=None):
    """Prints, per round: bytes of one worker, wall seconds, processor seconds of all processes and of the server's."""
    print(json.dumps({"sent": sent, "received": received, "seconds": seconds, "cpu": processor_seconds, "server_cpu": server_seconds}))
