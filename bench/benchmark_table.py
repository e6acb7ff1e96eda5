#!/usr/bin/env python3
"""Runs a Google Benchmark program and prints its rates as a table, with the implementations of an operation side by side.

    bench/benchmark_table.py build/release/bench/kernels_benchmark --benchmark_min_time=0.3

What follows the program goes to it.
"""
import json
import subprocess
import sys

IMPLEMENTATIONS = ("reference", "vector128", "avx2", "avx512")


def rates(program, flags):
    """Millions of items per second, by name."""
    command = [program, "--benchmark_format=json", *flags]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    failed = [row["name"] for row in report["benchmarks"] if row.get("error_occurred")]
    if failed:
        raise SystemExit(f"{program}: failed: {', '.join(failed)}")
    return {row["name"]: row["items_per_second"] / 1e6 for row in report["benchmarks"]}


def table(measured):
    """{operation: {implementation: rate}} as lines. An operation with one implementation has it in the first column."""
    rows = {}
    for name, rate in measured.items():
        parts = name.removeprefix("BM_").split("/")
        own = [part for part in parts if part in IMPLEMENTATIONS]
        operation = ", ".join(part for part in parts if part not in (*IMPLEMENTATIONS, "real_time"))
        rows.setdefault(operation, {})[own[0] if own else "rate"] = rate
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = ["| millions a second | " + " | ".join(columns) + " |", "|" + "---|" * (len(columns) + 1)]
    for operation, row in rows.items():
        lines.append(f"| {operation} | " + " | ".join(f"{row[column]:.0f}" if column in row else "" for column in columns) + " |")
    return "\n".join(lines)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("--help", "-h"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    print(table(rates(sys.argv[1], sys.argv[2:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
