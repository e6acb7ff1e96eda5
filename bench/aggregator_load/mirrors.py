#!/usr/bin/env python3
"""What a mirror saves the aggregator: synthetic workers take the results of a run of deltas from the aggregator's streams, and then from one
Varnish in front of it. Prints a table. Needs varnishd.

    bench/aggregator_load/mirrors.py --build build/release        W = 8, 32, 64; two minutes on two cores
    bench/aggregator_load/mirrors.py --build build/release --links --workers 64
        a segment of 4 MB, each worker behind a link of its own, 100 Mbps up and 500 down; needs root, for network namespaces
    bench/aggregator_load/mirrors.py --build build/release --snapshot
        two archivers join a run of 1.2 B parameters, one after the other; needs 20 GB of disk and 16 GB of memory

All share the machine's cores: without --links times are bounded by what they copy, hash and check.
"""
import argparse
import contextlib
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests/deploy")]
import load_run  # noqa: E402
import processes  # noqa: E402
import shaped_links  # noqa: E402

BLOCKS = 32703  # two segments
BLOCKS_OF_LINKS = 4203  # a segment
UP, DOWN = 100e6, 500e6  # bits a second
KEPT = 32
ROUNDS = 6  # the first is not measured
WORKERS = (8, 32, 64)
LIMIT_SECONDS = 280  # of one row
MODEL = HERE.parents[1] / "examples/llama_1b2"  # of --snapshot
SENT = "distro_aggregator_sent_bytes_total"
HEADER = ("| W | results come from | result MB | rounds/s | last upload byte to last result byte, ms p50, p99 | aggregator sent MB a round "
          "| aggregator CPU s a round |")


def measure(build, workers, mirrored, far):
    host = shaped_links.HUB if far else "127.0.0.1"
    holders = [processes.hold_port(host) for _ in range(3)]
    listen, objects, address = ("%s:%d" % holder.getsockname() for holder in holders)
    flags = ("--objects", objects, "--mirrors", f"http://{address}") if mirrored else ()
    with contextlib.ExitStack() as stack:
        for holder in holders:
            stack.callback(holder.close)
        load = stack.enter_context(load_run.Load(build, workers, ROUNDS, 0, method="deltas", blocks=BLOCKS_OF_LINKS if far else BLOCKS,
                                                 kept_per_block=KEPT, listen=listen, flags=flags))
        if mirrored:
            load.space.start_varnish(objects, address)

        def start():
            if far:
                return [load.start(first=i, count=1, prefix=link.prefix) for i, link in enumerate(far)]
            return [load.start()]
        seen, cpu = load.measure(start, LIMIT_SECONDS)
        sent = load.aggregator.metric(SENT, kind="result") / len(seen)
    _, lasts = load_run.segment_delays(seen)
    return {"down": seen[-1]["result_bytes"], "seconds": load_run.seconds_a_round(seen), "lasts": lasts, "sent": sent, "cpu": cpu}


def row(workers, mirrored, m):
    delays = ", ".join(f"{1e3 * load_run.percentile(m['lasts'], share):.0f}" for share in (.5, .99))
    return (f"| {workers} | {'one Varnish' if mirrored else 'the streams'} | {m['down'] / 1e6:.2f} | {1 / m['seconds']:.2f} | {delays} "
            f"| {m['sent'] / 1e6:.1f} | {m['cpu']:.2f} |")


def joiners(build):
    """Of each archiver: the seconds until it has the snapshot, and the bytes of it that the aggregator sends."""
    space = processes.Workspace(processes.programs_in(build))
    try:
        model, archive = space.folder / "model", space.folder / "archive"
        space.distroctl("init-model", "--config", MODEL / "config.json", "--seed", 1, "--out", model)
        objects = space.hold_address()
        _, mirror = space.start_varnish(objects, cache="6G")
        aggregator = space.start_aggregator("--run", space.write_run(segment_blocks=16384), "--model", model, "--objects", objects, "--mirrors", mirror)
        for name in ("first", "second"):
            sent, start = aggregator.metric(SENT, kind="snapshot"), time.monotonic()
            joiner = space.start(name, [space.binaries.archiver, "--aggregator", aggregator.grpc, "--insecure", "--data_dir", archive,
                                        "--once", "--noupload_snapshots"])
            if joiner.exit_code(LIMIT_SECONDS) != 0:
                raise SystemExit(joiner.log())
            yield name, time.monotonic() - start, aggregator.metric(SENT, kind="snapshot") - sent
            shutil.rmtree(archive)
    finally:
        space.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator and aggregator_load")
    parser.add_argument("--workers", nargs="+", type=int, default=WORKERS, help="W")
    parser.add_argument("--links", action="store_true", help="each worker in a network namespace of its own")
    parser.add_argument("--snapshot", action="store_true", help="what joiners of a run of 1.2 B parameters fetch")
    options = parser.parse_args()
    build = options.build.resolve() / "bin"
    if options.snapshot:
        load_run.print_head("| joins | seconds | aggregator sent, MB |")
        for name, seconds, sent in joiners(build):
            print(f"| {name} | {seconds:.0f} | {sent / 1e6:.1f} |", flush=True)
        return
    load_run.print_head(HEADER)
    for workers in options.workers:
        for mirrored in (False, True):
            with shaped_links.Hub() if options.links else contextlib.nullcontext() as hub:
                far = [hub.link(UP, DOWN) for _ in range(workers)] if hub else []
                print(row(workers, mirrored, measure(build, workers, mirrored, far)), flush=True)


if __name__ == "__main__":
    main()
