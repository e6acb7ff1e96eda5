#!/usr/bin/env python3
"""Alternatives to the aggregator, on the same machine in the same run with the same bytes: PyTorch's gloo, the exchange of
published DeMo, Flower's server. Prints a table; beside them the aggregator and the gRPC streaming loop of bench/aggregator_load.

    bench/peers/run.py --build build/release            W = 8 and 32; installs PyTorch and Flower into .deps with pip, once

The aggregator combines, logs to the disk and hashes what it sends; gloo and Flower only move bytes here.
"""
import argparse
import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "aggregator_load"))
import load  # noqa: E402
import load_run  # noqa: E402

# (workers, timed rounds)
WORKERS = ((8, 4), (32, 2))
PEERS = (("gloo all-gather of the updates", "gloo_all_gather.py"), ("Flower, 1.41", "flower.py"), ("DeMo's all-gather", "demo_all_gather.py"))
HEADER = "| W | | sent MB | received MB | wall s a round | CPU s a round, all processes | of these the server's | wall to the aggregator's |"


def row(workers, name, measured, seconds):
    def number(key, scale, digits):
        return "" if measured[key] is None else f"{measured[key] / scale:.{digits}f}"
    return (f"| {workers} | {name} | {number('sent', 1e6, 2)} | {number('received', 1e6, 2)} | {number('seconds', 1, 2)} | {number('cpu', 1, 2)} "
            f"| {number('server_cpu', 1, 2)} | {measured['seconds'] / seconds:.2f} |")


def compare(build, workers, rounds):
    own = load.measure(build / "bin", workers, 0, rounds)
    size = {"sent": own["up"], "received": own["down"], "cpu": None}
    print(row(workers, "distro-aggregator, lossless", size | {"seconds": own["seconds"], "server_cpu": own["cpu"]}, own["seconds"]))
    print(row(workers, "floor: gRPC streams", size | {"seconds": own["floor"], "server_cpu": own["floor_cpu"]}, own["seconds"]), flush=True)
    for name, script in PEERS:
        command = [FOLDER / script, "--workers", workers, "--up_bytes", own["up"], "--down_bytes", own["down"], "--rounds", rounds]
        output = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(row(workers, name, json.loads(output), own["seconds"]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator, aggregator_load, stream_floor")
    options = parser.parse_args()
    load_run.print_head(HEADER)
    for workers, rounds in WORKERS:
        compare(options.build, workers, rounds)


if __name__ == "__main__":
    main()
