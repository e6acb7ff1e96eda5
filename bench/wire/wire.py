#!/usr/bin/env python3
"""Bytes up and down a round for the report's 1.2 B layout, lossless and cut to the strongest votes of a block.

    bench/wire/wire.py --build build/release --text FILE --out build/wire

Random votes, in which nobody agrees, cost most; recorded ones come from a small model after 60 rounds of training (bench/convergence)
and are scaled by the number of blocks. Beside each: the ratio to the empirical entropy, to the report's 86.8 MB, to forwarding all uploads, and
zstd's size of the plain numbers (Debian's package `zstd`; without it that column is empty).
"""
import argparse
import json
import pathlib
import shutil
import subprocess

from recording import K, record

REPORT_BLOCKS = 294177  # of the 1.2 B layout (tests/common/method/signs/payload_test.cc)
REPORT_DOWN = 86.8e6
KEEP = (0, 16, 32, 64)
WORKERS = (8, 32, 128)


def zstd_bytes(file):
    if shutil.which("zstd") is None:
        return None
    return len(subprocess.run(["zstd", "-19", "-q", "-c", file], check=True, capture_output=True).stdout)


def sizes(options, workers, arguments):
    plain = options.out / "plain"
    plain.mkdir(exist_ok=True)
    keep = ",".join(str(count) for count in KEEP if count < K * workers)  # not those that a block cannot exceed
    output = subprocess.run([options.build / "bin/wire_sizes", "--workers", str(workers), "--k", str(K), "--keep", keep, "--plain", plain,
                             *arguments], check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in output.splitlines()]
    for row in rows:
        row["zstd"] = zstd_bytes(row["plain"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with bin/convergence, bin/distroctl, bin/wire_sizes")
    parser.add_argument("--text", type=pathlib.Path, help="training text of the recorded runs; default: random votes only")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder in which recorded votes are kept")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print("| votes | W | down | sent MB | received MB | bits a vote | to entropy | to the report's | to all uploads | zstd -19 / ours |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for workers in WORKERS:
        sources = [("random", [])]
        if options.text:
            sources.append(("recorded", ["--recorded", record(options.build, options.text, options.out, workers)[0]]))
        for name, arguments in sources:
            for row in sizes(options, workers, arguments):
                scale = REPORT_BLOCKS / row["blocks"]
                zstd = f"{row['zstd'] / row['received']:.2f}" if row["zstd"] else ""
                down = "lossless" if row["keep"] == 0 else f"top {row['keep']}"
                print(f"| {name} | {workers} | {down} | {row['sent'] * scale / 1e6:.2f} | {row['received'] * scale / 1e6:.2f} "
                      f"| {8 * row['received'] / row['votes']:.2f} | {row['received'] / row['entropy_bytes']:.3f} "
                      f"| {row['received'] * scale / REPORT_DOWN:.3f} | {row['received'] / row['sent'] / workers:.3f} "
                      f"| {zstd} |", flush=True)


if __name__ == "__main__":
    main()
