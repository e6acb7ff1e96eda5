#!/usr/bin/env python3
"""The operations of a deltas worker on its error buffer, and signs' Compress and Feedback, each compared with its floor: the plain loop that
moves the bytes which the operation has to move, in the same run, in turn. Prints a table; one thread, the best of five.

    bench/deltas_table.py build/release/bench/deltas_benchmark --benchmark_min_time=0.2

What follows the program goes to it.
"""
import json
import subprocess
import sys

PARAMETERS = 1205e6  # of the 1.2 B layout
REPEAT = ("--benchmark_format=json", "--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=true")
# The floor of each operation: bytes per parameter to read or write; None: K scattered elements of a block.
FLOORS = {"signs, Compress": 12, "signs, Feedback": 8, "DeltaIsFinite": 12, "FormDelta": 16, "AppendLargest, elements": 4,
          "AppendLargest, DCT": 4, "SubtractReturned, elements": None, "SubtractReturned, DCT": 8}
HEADER = "| operation | to move, bytes a parameter | millions a second | floor | times the floor | 1.2 B, ms |"


def best(report):
    """The repetition with the highest rate, by name."""
    rows = {}
    for row in report["benchmarks"]:
        name = row["run_name"]
        if row["run_type"] == "iteration" and (name not in rows or row["items_per_second"] > rows[name]["items_per_second"]):
            rows[name] = row
    return rows


def floor_of(name):
    """The name of the floor's row, and its bytes."""
    operation, _, k = name.partition("/")
    size = FLOORS[operation]
    if size is None:
        return f"ScatteredFloor/{k}", f"{k[2:]} elements a block"
    return f"Floor/bytes:{size}", str(size)


def table(rows):
    """The lines of the table, in the order of FLOORS, and Muon's time."""
    lines = [HEADER, "|" + "---|" * (HEADER.count("|") - 1)]
    known = [name for name in rows if name.partition("/")[0] in FLOORS]
    for name in sorted(known, key=lambda name: (list(FLOORS).index(name.partition("/")[0]), len(name), name)):
        floor, size = floor_of(name)
        rate, least = rows[name]["items_per_second"], rows[floor]["items_per_second"]
        lines.append(f"| {name.replace('/k:', ', K = ')} | {size} | {rate / 1e6:.0f} | {least / 1e6:.0f} | {least / rate:.1f} "
                     f"| {1e3 * PARAMETERS / rate:.0f} |")
    muon = rows["Muon"]
    lines += ["", f"Muon's step of a matrix of 2048 x 2048: {muon['cpu_time'] / 1e3:.2f} s, {muon['flops'] / 1e9:.0f} GFLOP/s."]
    return "\n".join(lines)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("--help", "-h"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    command = [sys.argv[1], *REPEAT, *sys.argv[2:]]
    print(table(best(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
