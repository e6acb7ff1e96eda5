"""scripts/soak: injects faults into real processes (storm.py), and checks the invariants continuously (README of the
invariants: docs/reliability.md)."""
import argparse
import pathlib
import sys
import threading
import time

import processes
from records import LogChecker
from storm import BOUND_SECONDS, Storm, Violation


class Watch(threading.Thread):
    """Follows the log's records, the processes' memory and handles, and the time since something last happened."""

    def __init__(self, storm):
        super().__init__(daemon=True)
        self.storm, self.checker = storm, LogChecker(storm.space.data_dir)
        self.lock, self.ended, self.error = threading.Lock(), threading.Event(), None
        self.largest = {}  # by kind of process: (resident bytes, file handles)
        self.longest_gap = 0.0
        self.last = (0, time.monotonic())  # records, when that number was new

    def run(self):
        try:
            while not self.ended.wait(0.2):
                self.look()
        except Exception as error:  # told by `check`, in the main thread
            self.error = error

    def look(self):
        with self.lock:
            records = self.checker.follow()
        now = time.monotonic()
        gap = now - self.last[1]
        if records > self.last[0]:
            self.longest_gap = max(self.longest_gap, gap)
            self.last = (records, now)
        elif gap > BOUND_SECONDS:
            raise Violation(f"no round was committed for {gap:.0f} s after round {records - 1}")
        for process in list(self.storm.space.processes):
            self.measure(process)

    def measure(self, process):
        usage = usage_of(process)
        if usage:
            kind = process.kind
            self.largest[kind] = tuple(map(max, usage, self.largest.get(kind, usage)))

    def check(self):
        if self.error:
            raise Violation(f"{type(self.error).__name__}: {self.error}") from self.error

    def stop(self):
        self.ended.set()
        self.join()
        self.check()
        with self.lock:
            self.checker.follow()


def usage_of(process):
    """(resident bytes, file handles); None when it is gone."""
    folder = pathlib.Path("/proc") / str(process.child.pid)
    try:
        resident = int((folder / "statm").read_text().split()[1]) * 4096
        return resident, len(list((folder / "fd").iterdir()))
    except (OSError, IndexError):
        return None


class Soak:
    def __init__(self, binaries, seed, growth_mb):
        self.storm = Storm(binaries, seed)
        self.growth_mb = growth_mb
        self.watch = Watch(self.storm)
        self.begin = time.monotonic()

    def run(self, seconds, kills):
        self.storm.start()
        self.watch.start()
        strikes = 0
        while (time.monotonic() - self.begin < seconds if seconds else self.storm.kills() < kills):
            self.storm.strike()
            self.watch.check()
            strikes += 1
            if strikes % 20 == 0:
                self.check_told_is_stored()
            time.sleep(self.storm.random.uniform(0, 0.5))
        self.storm.calm()
        self.check_flat()
        self.end()

    def check_told_is_stored(self):
        """What a worker has applied is in the log."""
        for worker in self.storm.present():
            if worker.frozen or not worker.process.serves():
                continue
            told = worker.process.applied()
            with self.watch.lock:
                stored = self.watch.checker.follow()
            if told > stored:
                raise Violation(f"{worker.name} has applied round {told - 1}, and the log ends before round {stored}")

    def check_flat(self):
        """Rounds and broken links without kills: the aggregator uses no more memory and handles than before."""
        storm = self.storm
        storm.await_progress(50)
        before = usage_of(storm.aggregator)
        for _ in range(10):
            storm.break_link()
            storm.await_progress(20)
        after = usage_of(storm.aggregator)
        if after[0] > before[0] + (self.growth_mb << 20) or after[1] > before[1] + 20:
            raise Violation(f"(resident bytes, file handles) of the aggregator grew from {before} to {after}")

    def end(self):
        """All workers stop at the same round, and their state is compared with the log."""
        storm, space = self.storm, self.storm.space
        space.distroctl("run", "pause", storm.aggregator.grpc, "--reason", "end of the storm", "--insecure")
        head = storm.await_everyone()
        for worker in storm.workers:
            storm.settle(worker)
        self.watch.stop()
        self.watch.checker.check_nothing_changed()
        replay = space.replay()
        states = {name: summary["state_hash"] for name, _, summary in storm.settled[-len(storm.workers):]}
        if set(states.values()) != {replay["state"]}:
            raise Violation(f"round {head}: replicas hold {states}, the log gives {replay['state']}")
        self.check_included()

    def check_included(self):
        """A process's count of used updates equals the log's; one may have been open when it left."""
        for name, worker, summary in self.storm.settled:
            believed = summary["updates_sent"] - summary["updates_excluded"]
            used = self.watch.checker.included[worker, int(summary["incarnation"], 16)]
            if not 0 <= believed - used <= 1:
                raise Violation(f"{name} believes that {believed} of its updates were used, the log used {used}")

    def report(self, seed, outcome):
        checker, watch = self.watch.checker, self.watch
        lines = [f"seed {seed}, {time.monotonic() - self.begin:.0f} s: {outcome}", ""]
        lines += [f"{count:6} {name}" for name, count in sorted(self.storm.counts.items())]
        lines += [f"{self.storm.kills():6} kills in total", f"{len(checker.hashes):6} rounds committed",
                  f"{checker.members:6} state hashes compared",
                  f"{len(self.storm.settled):6} workers that left had their updates counted",
                  f"{watch.longest_gap:6.1f} s was the longest time without a round"]
        lines += [f"{resident >> 20:6} MB and {handles} file handles at most: {kind}"
                  for kind, (resident, handles) in sorted(watch.largest.items())]
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    processes.add_binaries(parser)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=2)
    length.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--growth_mb", type=int, default=32, help="of the aggregator's memory, at most; a sanitizer keeps what was freed")
    parser.add_argument("--report", type=pathlib.Path)
    arguments = parser.parse_args()
    soak = Soak(arguments, arguments.seed, arguments.growth_mb)
    outcome = "every invariant held"
    try:
        soak.run(0 if arguments.kills else arguments.minutes * 60, arguments.kills)
    except AssertionError as error:
        outcome = f"FAILED: {error}"
        print(soak.storm.space.logs(), file=sys.stderr)
    finally:
        soak.storm.space.close()
    report = soak.report(arguments.seed, outcome)
    print(report)
    if arguments.report:
        arguments.report.write_text(report)
    sys.exit(outcome.startswith("FAILED"))


if __name__ == "__main__":
    main()
