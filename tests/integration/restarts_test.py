"""An aggregator that restarts, that runs twice, or that is restored from a backup."""
import re
import shutil
import signal

import processes
from processes import ProcessTest, until

ROUNDS = 200
NEEDED = {"rounds": ROUNDS, "start_workers": 2, "min_workers": 2}  # no round without both


class RestartsTest(ProcessTest):
    def start(self, **overrides):
        """An aggregator behind a proxy, and two workers."""
        space = self.workspace
        aggregator = space.create_run("--drain_grace", "20s", **{**NEEDED, **overrides})
        self.proxy = space.start_proxy(aggregator.grpc)
        self.workers = [space.start_worker(name, self.proxy.address) for name in ("a", "b")]
        return aggregator

    def epoch(self, aggregator):
        return int(re.search(r"epoch\s+(\d+)", self.workspace.distroctl("run", "show", aggregator.grpc, "--insecure"))[1])

    def expect_whole_run(self):
        """Waits for the end; every round was committed once, and every replica and the log hold the same."""
        state = self.finish(self.workers)
        replay = self.workspace.replay()
        self.assertEqual(replay["state"], state)
        self.assertTrue(replay["rounds"].startswith(f"{ROUNDS} of {ROUNDS}, "), replay)
        self.assertTrue(replay["members"].endswith(" 0 differ"), replay)
        return state

    def state_of_the_undisturbed_run(self):
        space = processes.Workspace(self.binaries)
        self.addCleanup(space.close)
        aggregator = space.create_run(**NEEDED)
        return self.finish([space.start_worker(name, aggregator.grpc) for name in ("a", "b")])

    def test_refuses_second_aggregator_on_folder(self):
        space = self.workspace
        aggregator = self.start(rounds=100000)
        aggregator.await_round(5)
        second = space.start("second", space.aggregator_command())
        self.assertEqual(second.exit_code(), 3, second.log())
        self.assertIn(str(space.data_dir), second.log())
        aggregator.await_round(aggregator.round() + 5)

    def test_restarts_one_after_the_other_lose_nothing(self):
        space = self.workspace
        aggregator = self.start()
        for _ in range(4):
            aggregator.await_round(aggregator.round() + 10)
            aggregator.signal(signal.SIGTERM)
            self.assertEqual(aggregator.exit_code(), 0, aggregator.log()[-3000:])
            aggregator = space.start_aggregator("--drain_grace", "20s")
            self.proxy.target = aggregator.grpc
        self.assertEqual(self.expect_whole_run(), self.state_of_the_undisturbed_run())
        for worker in self.workers:
            self.assertEqual((worker.summary()["rounds_applied"], worker.summary()["updates_excluded"]), (ROUNDS, 0))

    def test_ends_aggregator_on_second_signal(self):
        space = self.workspace
        aggregator = space.create_run("--drain_grace", "10m", **NEEDED)
        workers = [space.start_worker(name, aggregator.grpc) for name in ("a", "b")]
        aggregator.await_round(5)
        workers[0].freeze()  # the round stays open
        aggregator.signal(signal.SIGTERM)
        until(lambda: "not_draining" in aggregator.get("/readyz?verbose")[1] and aggregator.get("/readyz")[0] == 503,
              "the aggregator drains")
        aggregator.alive()
        aggregator.signal(signal.SIGTERM)
        self.assertEqual(aggregator.exit_code(), 128 + signal.SIGTERM)

    def test_restores_state_of_worker(self):
        """Unused and unsent updates are restored; otherwise the bits would differ."""
        space = self.workspace
        aggregator = space.create_run(**NEEDED)
        self.workers = [space.start_worker("a", aggregator.grpc)]
        for i in range(4):
            b = space.start_worker("b", aggregator.grpc, "--state_dir", space.folder / "state", log_name=f"b-{i}")
            if i < 3:
                aggregator.await_round(aggregator.round() + 15)
                b.signal(signal.SIGTERM)
                self.assertEqual(b.exit_code(), 128 + signal.SIGTERM, b.log()[-3000:])
        self.workers.append(b)
        self.assertEqual(self.expect_whole_run(), self.state_of_the_undisturbed_run())

    def test_workers_that_are_ahead_of_a_restored_backup_resync(self):
        space = self.workspace
        aggregator = self.start()
        aggregator.await_round(20)
        backup = space.folder / "backup"
        shutil.copytree(space.data_dir, backup, ignore=shutil.ignore_patterns("*.tmp", "lock"))
        copied = len(list((backup / "rounds").glob("0*.record")))
        aggregator.await_round(copied + 20)
        epoch = self.epoch(aggregator)
        aggregator.kill()
        shutil.rmtree(space.data_dir)
        backup.rename(space.data_dir)
        aggregator = space.start_aggregator()
        self.assertGreater(self.epoch(aggregator), epoch)
        self.proxy.target = aggregator.grpc
        self.expect_whole_run()
        for worker in self.workers:
            self.assertGreaterEqual(worker.summary()["resyncs"], 1)

    def test_fences_replaced_aggregator(self):
        """Its folder was copied and continues elsewhere. A worker that returns to it reports that, and is refused."""
        space = self.workspace
        old = self.start()
        old.await_round(20)
        self.workers[0].freeze()  # the old one cannot commit any more
        at = old.round()
        elsewhere = space.folder / "elsewhere"
        shutil.copytree(space.data_dir, elsewhere, ignore=shutil.ignore_patterns("*.tmp", "lock"))
        new = space.start_aggregator(data_dir=elsewhere, log_name="new")
        self.assertGreater(self.epoch(new), self.epoch(old))
        self.proxy.target = new.grpc
        self.proxy.break_all("reset")
        self.workers[0].thaw()
        new.await_round(at + 10)
        self.proxy.target = old.grpc
        self.proxy.break_all("reset")
        until(lambda: "fenced" in old.log(), "the old aggregator refuses the worker")
        self.proxy.target = new.grpc
        space.data_dir = elsewhere
        self.expect_whole_run()


if __name__ == "__main__":
    processes.main()
