#!/usr/bin/env python3
"""What a log in a bucket adds to a round: synthetic workers of deltas at the report's 1.2 B layout against an aggregator that writes its
log into its folder, then against one that also puts it into a bucket. Prints a table.

    scripts/test_bucket --keep       starts Ceph, and prints what to export
    bench/aggregator_load/bucket.py --build build/dev --log s3://runs/load

Store, workers and aggregator share the machine's cores.
"""
import argparse
import pathlib
import sys
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import load_run  # noqa: E402

HEADER = "| W | K | log | result MB | rounds/s | writing the log, s a round | aggregator CPU s a round |"
LIMIT_SECONDS = 280


def measure(build, workers, kept, rounds, flags):
    with load_run.Load(build, workers, rounds + 1, 0, method="deltas", kept_per_block=kept, flags=flags) as load:
        seen, cpu = load.measure(lambda: [load.start()], LIMIT_SECONDS)
        writing = load.aggregator.metric("distro_aggregator_phase_seconds_total", phase="log") / len(seen)
        return (f"| {seen[-1]['result_bytes'] / 1e6:.1f} | {1 / load_run.seconds_a_round(seen):.3f} | {writing:.2f} | {cpu:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator and aggregator_load")
    parser.add_argument("--log", required=True, help="s3://BUCKET/PREFIX; each run has a folder of its own below it")
    parser.add_argument("--workers", nargs="+", type=int, default=[8, 32], help="W (default: 8 and 32)")
    parser.add_argument("--kept", type=int, default=32, help="K (default: 32)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (default: 3)")
    args = parser.parse_args()
    load_run.print_head(HEADER)
    for workers in args.workers:
        for name, flags in (("folder", ()), ("bucket", ("--log", f"{args.log}/{uuid.uuid4()}"))):
            print(f"| {workers} | {args.kept} | {name} " + measure(args.build / "bin", workers, args.kept, args.rounds, flags), flush=True)


if __name__ == "__main__":
    sys.exit(main())
