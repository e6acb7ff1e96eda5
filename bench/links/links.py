#!/usr/bin/env python3
"""Rounds over slow and uneven links: synthetic workers (bench/aggregator_load) at the report's 1.2 B layout, K = 4, the 32 strongest votes
of a block down, each in a network namespace of its own behind `tc tbf`; the aggregator in the middle. Prints a table.

    bench/links/links.py --build build/release [--workers 32] [--short]

A round cannot be shorter than what a worker sends over its uplink, or what it receives over its downlink, and beyond the longer of both
the last segment: its result leaves only when it is whole at the aggregator (where the downlink takes longer: the first upload of a
segment, before which nothing can be received). Bytes are counted on the wire, with all headers and acknowledgements. Without root
the links cannot be made; it says so and ends with 3.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/aggregator_load"), str(ROOT / "tests/deploy")]
import load_run  # noqa: E402
import shaped_links  # noqa: E402

KEEP = 32
MBPS = 1e6
REPORT_SECONDS = 6.94  # 86.8 MB at 100 Mbps
LONG_QUEUE, SHORT_QUEUE = "500ms", "30ms"  # queues: a modem with a long queue, and one with a short queue
# (links, up and down Mbps of all, up of the last worker, queues, measured rounds)
CASES = (("10 up, 100 down", 10, 100, None, LONG_QUEUE, 5), ("10 up, 100 down; queues of 30 ms", 10, 100, None, SHORT_QUEUE, 5),
         ("20, 20", 20, 20, None, LONG_QUEUE, 3), ("1000, 1000", 1000, 1000, None, LONG_QUEUE, 5),
         ("10 up, 100 down; one 1 up", 10, 100, 1, LONG_QUEUE, 2))
SHORT = CASES[:2]
LIMIT_SECONDS = 280  # of one case


def shaped_bytes(prefix=()):
    """Bytes passed by the shapers of a namespace, with the headers of each packet; a device counts the headers of a combined packet once."""
    found = subprocess.run([*prefix, "tc", "-j", "-s", "qdisc", "show"], check=True, capture_output=True).stdout
    return sum(one["bytes"] for one in json.loads(found) if one["kind"] == "tbf")


def wire_bytes(links):
    """Bytes (from workers, to workers), of all links together."""
    return sum(shaped_bytes(link.prefix) for link in links), shaped_bytes()


def least_seconds(up_bytes, down_bytes, up, down, segments):
    """The least seconds of a round: the slower direction, plus the last segment. Bytes per worker, bits per second."""
    ways = 8 * up_bytes / up, 8 * down_bytes / down
    return max(ways), min(ways) / segments


def run_rounds(build, links, rounds, **layout):
    """Rounds with one worker per link; the bytes of the links; the aggregator's seconds from a segment's last byte to its result's first."""
    with load_run.Load(build, len(links), rounds + 1, KEEP, listen="0.0.0.0:0", **layout) as load:
        port = load.aggregator.grpc.rsplit(":", 1)[1]
        before = wire_bytes(links)
        clients = [load.start(first=i, count=1, address=f"{link.address}:{port}", prefix=link.prefix) for i, link in enumerate(links)]
        seen = load.result(clients, LIMIT_SECONDS)
        latency = load_run.result_latency(load.aggregator)
        moved = [(now - then) / len(seen) / len(links) for then, now in zip(before, wire_bytes(links))]
    return seen, moved, latency


def measure(build, workers, up, down, slowest_up, queue, rounds, **layout):
    with shaped_links.Hub() as hub:
        rates = [up] * (workers - 1) + [slowest_up or up]
        links = [hub.link(up=rate * MBPS, down=down * MBPS, queue=queue) for rate in rates]
        seen, (sent, received), latency = run_rounds(build, links, rounds, **layout)
    longest, last = least_seconds(sent, received, (slowest_up or up) * MBPS, down * MBPS, len(seen[0]["segments"]))
    return {"sent": sent, "received": received, "longest": longest, "last": last, "seconds": load_run.seconds_a_round(seen),
            "latency": latency, "early": load_run.early_share(seen)}


HEADER = ("| links, Mbps | W | on the wire up, down MB a round | longer way s | and last segment s | round s | to both | report's 6.94 s to round "
          "| last upload byte to first result byte at the aggregator, ms mean | segments back before the round's last acknowledgement |")


def row(name, workers, m):
    return (f"| {name} | {workers} | {m['sent'] / 1e6:.2f}, {m['received'] / 1e6:.2f} | {m['longest']:.2f} | {m['longest'] + m['last']:.2f} "
            f"| {m['seconds']:.2f} | {m['seconds'] / (m['longest'] + m['last']):.2f} | {REPORT_SECONDS / m['seconds']:.1f} "
            f"| {1e3 * m['latency']:.0f} | {100 * m['early']:.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator and aggregator_load")
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--short", action="store_true", help="10 Mbps up and 100 Mbps down only")
    options = parser.parse_args()
    load_run.print_head(HEADER)
    for name, *case in SHORT if options.short else CASES:
        try:
            measured = measure(options.build.resolve() / "bin", options.workers, *case)
        except shaped_links.Refused as reason:
            print(f"links cannot be shaped here: {reason}", file=sys.stderr)
            return 3
        print(row(name, options.workers, measured), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
