#!/usr/bin/env python3
"""Measures the cost of slow links for real training: workers of a small model, whose links are made fast and slow in turn during the
run, so that other load on the machine affects both. Prints a table: seconds a step, with and without overlap.

    bench/links/training.py --build build/release

A slow uplink carries an update in 0.65 of a step on fast links, as the report's case does: 1.6 s of 2.46 s (17.1 hours for 25 000
steps without DisTrO); a slow downlink is ten times as fast. Without root the links cannot be made; it says so and ends with 3.
"""
import argparse
import pathlib
import re
import statistics
import sys
from datetime import datetime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import links  # noqa: E402
import load_run  # noqa: E402
import processes  # noqa: E402
import shaped_links  # noqa: E402

MODEL = {"hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 4}
RUN = {"sequence_length": 32, "samples_per_worker": 64, "kept_per_block": 43, "segment_blocks": 64, "beta": 0.95}
WORKERS = 2
FAST = 1000e6  # bits a second
SHARE = 0.65  # of a step on fast links: the time of an update on a slow uplink
SETTLE = 3  # rounds at the start of each phase that do not count
PHASE, PHASES = 12, 4  # rounds; fast and slow in turn
PATIENCE = ("--heartbeat_interval", "1s", "--suspect_after", "60s", "--lease", "5m")


class Training:
    def __init__(self, binaries, hub, overlap, phase):
        self.phase = phase
        self.space = processes.Workspace(binaries)
        self.space.model = MODEL
        self.links = [hub.link(up=FAST, down=FAST) for _ in range(WORKERS)]
        run = self.space.write_run(**RUN, rounds=PHASES * phase + 1, overlap=overlap, start_workers=WORKERS, min_workers=WORKERS)
        self.aggregator = self.space.start_aggregator("--run", run, "--model", self.space.init_model(), *PATIENCE, listen="0.0.0.0:0")
        port = self.aggregator.grpc.rsplit(":", 1)[1]
        for i, link in enumerate(self.links):
            self.space.start(f"w{i}", [*link.prefix, binaries.worker, "--aggregator", f"{link.address}:{port}", "--data", self.space.text,
                                       "--name", f"w{i}", "--insecure", "--threads", 1])

    def step_seconds(self, end):
        """Seconds from one commit to the next, for the last rounds before `end`."""
        times = [datetime.fromisoformat(time) for time in re.findall(r"(?m)^(\S+)Z .*round committed", self.aggregator.log())]
        counted = times[end - self.phase + SETTLE:end]
        return [(after - before).total_seconds() for before, after in zip(counted, counted[1:])]

    def run(self):
        """Seconds per step on fast links and on slow ones; the bits per second of a slow uplink."""
        steps, slow = {"fast": [], "slow": []}, None
        for number in range(PHASES):
            kind = ("fast", "slow")[number % 2]
            for link in self.links:
                link.shape(up=slow if kind == "slow" else FAST, down=10 * slow if kind == "slow" else FAST)
            before, end = links.wire_bytes(self.links)[0], (number + 1) * self.phase
            self.aggregator.await_round(end)
            steps[kind] += self.step_seconds(end)
            update = (links.wire_bytes(self.links)[0] - before) / self.phase / WORKERS
            slow = slow or 8 * update / (SHARE * statistics.median(steps["fast"]))
        return steps["fast"], steps["slow"], slow


def measure(binaries, overlap, phase=PHASE):
    with shaped_links.Hub() as hub:
        training = Training(binaries, hub, overlap, phase)
        try:
            return training.run()
        finally:
            training.space.close()


HEADER = "| overlap | slow links up, kbps | fast links, s a step | slow links, s a step | slow to fast |"


def row(overlap, fast, slow, up):
    fast, slow = statistics.median(fast), statistics.median(slow)
    return f"| {overlap} | {up / 1e3:.0f} | {fast:.2f} | {slow:.2f} | {slow / fast:.3f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator, distro-worker, distroctl")
    options = parser.parse_args()
    binaries = processes.programs_in(options.build.resolve() / "bin")
    load_run.print_head(HEADER)
    for overlap in (1, 0):
        try:
            measured = measure(binaries, overlap)
        except shaped_links.Refused as reason:
            print(f"links cannot be shaped here: {reason}", file=sys.stderr)
            return 3
        print(row(overlap, *measured), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
