"""An archiver follows two workers, is killed in the middle and started again: it continues from its own copy, ends with the
workers' bits, and the model that it publishes is the workers' checkpoint byte for byte. Joiners start from what it
uploaded, and the log drops the rounds before."""
import pathlib
import re
import signal

import processes
from processes import ProcessTest, until

ROUNDS = 120
INTERVAL = 10


def files(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


class ArchiverTest(ProcessTest):
    def start_archiver(self, aggregator, *flags, **names):
        return self.workspace.start_archiver(aggregator.grpc, "--snapshot_interval_rounds", INTERVAL, *flags, **names)

    def test_killed_in_the_middle_it_ends_with_the_workers_bits(self):
        space = self.workspace
        aggregator = space.create_run("--lease", "10m", rounds=ROUNDS, start_workers=2, min_workers=2)
        first = self.start_archiver(aggregator)
        workers = [space.start_worker(name, aggregator.grpc, "--checkpoint_dir", space.folder / name)
                   for name in ("a", "b")]
        until(lambda: first.alive() and first.metric("distro_archiver_snapshots_uploaded_total") >= 2, "two snapshots stored")
        first.kill()
        aggregator.await_round(aggregator.round() + 5)
        second = self.start_archiver(aggregator, log_name="archiver_again")
        begin = int(second.find(r"following the run .*? round=(\d+)")[1])
        self.assertGreaterEqual(begin, 2 * INTERVAL, "it did not go on from its own copy")
        state_hash = self.finish(workers)
        self.assertEqual(second.exit_code(), 0)
        saved = re.findall(r"own copy saved round=(\d+) .*state_hash=(\w+)", second.log())[-1]
        self.assertEqual(saved, (str(ROUNDS), state_hash))
        self.assertNotIn("workers report other state hashes than this replica's", first.log() + second.log() + aggregator.log())
        self.assertEqual(files(space.folder / "published" / f"round-{ROUNDS}"), files(space.folder / "a"))
        kept = sorted(path.name for path in (space.folder / "published").iterdir())
        self.assertEqual(kept, sorted(f"round-{ROUNDS - n * INTERVAL}" for n in range(3)))
        self.check_log(aggregator)

    def check_log(self, aggregator):
        """The aggregator has the last snapshots and dropped the rounds before the older one."""
        stored = [int(n) for n in re.findall(r"snapshot stored round=(\d+)", aggregator.log())]
        self.assertEqual(stored[-1], ROUNDS - 1, "the last that a round's record confirms")
        dropped = [int(n) for n in re.findall(r"old rounds dropped before=(\d+)", aggregator.log())]
        self.assertEqual(dropped[-1], stored[-2])
        late = self.workspace.start_worker("late", aggregator.grpc)
        self.assertEqual(late.exit_code(), 0)
        self.assertEqual(late.summary()["rounds_applied"], 1)

    def test_survives_kill_of_aggregator(self):
        space = self.workspace
        aggregator = space.create_run("--lease", "10m", rounds=ROUNDS, start_workers=1)
        worker = space.start_worker("a", aggregator.grpc)
        archiver = self.start_archiver(aggregator)
        until(lambda: archiver.alive() and (archiver.metric("distro_archiver_round") or 0) >= INTERVAL, "rounds replayed")
        aggregator.kill()
        space.start_aggregator(log_name="aggregator_again", listen=aggregator.grpc)
        state_hash = self.finish([worker])
        self.assertEqual(archiver.exit_code(), 0)
        saved = re.findall(r"own copy saved round=(\d+) .*state_hash=(\w+)", archiver.log())[-1]
        self.assertEqual(saved, (str(ROUNDS), state_hash))
        self.assertNotIn("set aside", archiver.log())

    def test_saves_on_signal_and_catches_up(self):
        space = self.workspace
        aggregator = space.create_run("--lease", "10m", rounds=100000, start_workers=1)
        space.start_worker("a", aggregator.grpc)
        archiver = self.start_archiver(aggregator)
        until(lambda: archiver.alive() and (archiver.metric("distro_archiver_round") or 0) >= 3, "three rounds replayed")
        archiver.signal(signal.SIGTERM)
        self.assertEqual(archiver.exit_code(), 0)
        saved = int(re.findall(r"own copy saved round=(\d+)", archiver.log())[-1])
        aggregator.await_round(saved + 5)
        once = self.start_archiver(aggregator, "--once", log_name="once")
        self.assertEqual(once.exit_code(), 0)
        follows = re.search(r"following the run .*? round=(\d+) head=(\d+)", once.log())
        self.assertEqual(int(follows[1]), saved)
        published = int(re.findall(r"folder published round=(\d+)", once.log())[-1])
        self.assertGreaterEqual(published, int(follows[2]))
        # A folder of one run is refused by another.
        other = space.start_aggregator("--run", space.write_run(name="other"), "--model", space.folder / "model",
                                       log_name="other", data_dir=space.folder / "other_data")
        refused = self.start_archiver(other, log_name="refused")
        self.assertEqual(refused.exit_code(), 3)
        self.assertIn("another --data_dir", refused.log())
        usage = self.start_archiver(other, "--keep", "-1", log_name="usage")
        self.assertEqual(usage.exit_code(), 2)


if __name__ == "__main__":
    processes.main()
