"""A run with a window and workers of three speeds: each takes as many local steps as fit, its update counts by their number, and
every sample is read once, also when a worker is killed within a window and when the aggregator is started again."""
import collections
import json

import processes
from processes import ProcessTest

ROUNDS, STEPS, SAMPLES = 40, 16, 4
SPEEDS = {"fast": (), "middle": ("--hold_back", "20ms"), "slow": ("--hold_back", "100ms")}


def indices(ranges):
    return [first["first_sample"] + i for first in ranges for i in range(first["samples"])]


class Samples:
    """Assigned samples by worker, from the log."""

    def __init__(self, names):
        slot = STEPS * SAMPLES
        firsts = [[{"first_sample": (t * len(names) + i) * slot, "samples": slot}] for t in (0, 1) for i in range(len(names))]
        self.slots = {t: dict(zip(sorted(names), firsts[t * len(names):])) for t in (0, 1)}
        self.read = collections.Counter()
        self.steps = collections.Counter()

    def add(self, header):
        for member in header["members"]:
            steps = member.get("local_steps", 0)
            given = indices(member.get("given") or self.slots[header["round"]][member["name"]])
            assert 0 <= steps <= STEPS, header
            if member["segments"]:
                assert member["weight"] == max(1, (30 * steps + STEPS) // (2 * STEPS)), member
                self.read.update(given[:steps * SAMPLES])
                self.steps[member["name"]] += steps
        self.slots[header["round"] + 2] = {slot["worker"]: slot["samples"] for slot in header["slots"]}
        self.unread, self.next_sample = indices(header["unread"]), header["next_sample"]


class WindowsTest(ProcessTest):
    def start(self, name, aggregator, log_name=None):
        space = self.workspace
        return space.start_worker(name, aggregator.grpc, "--state_dir", space.folder / name, *SPEEDS[name], log_name=log_name)

    def test_reads_samples_once_at_three_speeds(self):
        space = self.workspace
        aggregator = space.create_run("--lease", "5s", rounds=ROUNDS, start_workers=3, min_workers=1, local_steps=STEPS,
                                      samples_per_worker=SAMPLES, round_window="250ms", round_deadline="30s", probation_rounds=1)
        workers = {name: self.start(name, aggregator) for name in SPEEDS}
        aggregator.await_round(5)
        workers["middle"].kill()
        aggregator.await_round(aggregator.round() + 3)
        workers["middle"] = self.start("middle", aggregator, log_name="middle_again")
        aggregator.await_round(aggregator.round() + 3)
        aggregator.kill()
        aggregator = space.start_aggregator("--lease", "5s", log_name="aggregator_again", listen=aggregator.grpc)
        self.finish(list(workers.values()))
        self.check_log()

    def check_log(self):
        samples = Samples(SPEEDS)
        for t in range(ROUNDS):
            shown = self.workspace.distroctl("log", "show", t, "--data_dir", self.workspace.data_dir, "--output", "json")
            samples.add(json.loads(shown))
        self.assertEqual([i for i, times in samples.read.items() if times > 1], [], "read twice")
        left = collections.Counter(samples.unread)
        self.assertEqual(samples.read + left, collections.Counter(range(samples.next_sample)), "read, or listed as unread")
        # Two steps of 100 ms and a bit do not leave room for a third.
        self.assertLessEqual(samples.steps["slow"], 2 * ROUNDS)
        self.assertGreater(samples.steps["fast"], samples.steps["slow"])


if __name__ == "__main__":
    processes.main()
