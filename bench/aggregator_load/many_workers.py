#!/usr/bin/env python3
"""What the aggregator of many workers needs, on paper: `distroctl plan` for 1.2 B parameters, steps of 30 s and links that carry more than
they must. Prints a table.

    bench/aggregator_load/many_workers.py --build build/release
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import page  # noqa: E402

WORKERS = (8, 32, 128, 512, 2048)
CHOICES = ((5, 128), (20, 128), (5, 4096))  # H, K
HEADER = ("W", "H, K", "down a step, MB", "aggregator, cores", "memory, GB", "received a day, TB", "sent a day, TB", "of it with mirrors, TB")


def plan(build, workers, local_steps, kept):
    done = subprocess.run([
        build / "bin" / "distroctl", "plan", "--model", ROOT / "examples" / "llama_1b2", "--workers", str(workers), "--local_steps", str(local_steps),
        "--kept", str(kept), "--compute_seconds", "30", "--up_mbps", "100", "--down_mbps", "500", "--output", "json"],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def row(build, workers, local_steps, kept):
    found = plan(build, workers, local_steps, kept)
    sent = found["aggregator_sent_bytes_a_day"]
    figures = (found["result_bytes_a_step"] / 1e6, found["aggregator_cores"], found["aggregator_memory_bytes"] / 1e9,
               found["aggregator_received_bytes_a_day"] / 1e12, sent / 1e12, sent / workers / 1e12)
    return (workers, f"{local_steps}, {kept}", *(f"{figure:.2g}" if figure < 10 else f"{figure:.0f}" for figure in figures))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with bin/distroctl")
    build = parser.parse_args().build
    print(page.table(HEADER, [row(build, workers, *choice) for workers in WORKERS for choice in CHOICES]))


if __name__ == "__main__":
    main()
