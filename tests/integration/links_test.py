"""A bad link does not change the result of a run.

One of two workers reaches the aggregator through a proxy that breaks its connections in
the middle of frames. No worker may be excluded (no deadline, both are needed), so the run must end with exactly the bits of
the undisturbed run: an update that was lost, doubled or counted late would change them."""
import processes
from processes import ProcessTest, until

ROUNDS = 300
BROKEN = ("cut", "reset", "half_close")


class LinksTest(ProcessTest):
    def create(self, rounds=ROUNDS):
        return self.workspace.create_run(rounds=rounds, start_workers=2, min_workers=2)

    def expect_the_undisturbed_run(self, workers, rounds=ROUNDS):
        """Waits for the end. Every update of every round was included, and the log and both workers hold the same bits."""
        state = self.finish(workers)
        for worker in workers:
            summary = worker.summary()
            self.assertEqual((summary["rounds_applied"], summary["updates_excluded"]), (rounds, 0), worker.name)
        replay = self.workspace.replay()
        self.assertEqual(replay["state"], state)
        self.assertTrue(replay["rounds"].startswith(f"{rounds} of {rounds}, "), replay)
        self.assertTrue(replay["members"].startswith(f"{2 * rounds} ") and replay["members"].endswith(" 0 differ"), replay)
        self.assertEqual(state, self.state_of_the_undisturbed_run(rounds))

    def state_of_the_undisturbed_run(self, rounds):
        space = processes.Workspace(self.binaries)
        space.model = self.workspace.model
        self.addCleanup(space.close)
        aggregator = space.create_run(rounds=rounds, start_workers=2, min_workers=2)
        return self.finish([space.start_worker(name, aggregator.grpc) for name in ("a", "b")])

    def meet(self, aggregator, fault):
        """Waits for an armed fault, and for two rounds after it."""
        until(lambda: fault.happened or not aggregator.alive(), f"{fault.kind} in {fault.method} {fault.direction}")
        at = aggregator.round()
        self.assertLess(at, ROUNDS - 4, "too few rounds are left")
        aggregator.await_round(at + 2)

    def test_connections_that_break_while_rounds_go_on(self):
        space = self.workspace
        aggregator = self.create()
        proxy = space.start_proxy(aggregator.grpc)
        workers = [space.start_worker("a", aggregator.grpc), space.start_worker("b", proxy.address)]
        aggregator.await_round(3)
        for kind in BROKEN:
            for method, direction in (("UploadUpdate", "up"), ("UploadUpdate", "down"), ("SubscribeRounds", "down"),
                                      ("Heartbeat", "up"), ("Heartbeat", "down")):
                self.meet(aggregator, proxy.arm(kind, method, direction, frame=1))
        self.expect_the_undisturbed_run(workers)
        self.assertGreaterEqual(workers[1].summary()["reconnects"], len(BROKEN))

    def test_connections_that_break_before_the_first_round(self):
        space, rounds = self.workspace, 20
        space.model = {"hidden_size": 128, "intermediate_size": 512}  # a snapshot of several messages
        aggregator = self.create(rounds)
        proxy = space.start_proxy(aggregator.grpc)
        faults = [proxy.arm(kind, method, direction, frame)
                  for kind, method, direction, frame in (
                      ("cut", "Join", "up", 0), ("half_close", "Join", "down", 0), ("reset", "DownloadSnapshot", "up", 0),
                      ("cut", "DownloadSnapshot", "down", 1), ("reset", "DownloadSnapshot", "down", 1),
                      ("half_close", "DownloadSnapshot", "down", 1), ("reset", "SubscribeRounds", "up", 0),
                      ("cut", "Leave", "down", 0))]
        workers = [space.start_worker("a", aggregator.grpc), space.start_worker("b", proxy.address)]
        self.expect_the_undisturbed_run(workers, rounds)
        self.assertEqual([(fault.kind, fault.method) for fault in faults if not fault.happened], [])

    def test_sends_a_segment_that_takes_longer_than_the_stall_timeout(self):
        space, rounds = self.workspace, 2
        space.model = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 2}
        aggregator = space.create_run("--stall_timeout", "5s", rounds=rounds, start_workers=2, min_workers=2,
                                      kept_per_block=512, segment_blocks=4096, warmup_rounds=1)
        proxy = space.start_proxy(aggregator.grpc)
        workers = [space.start_worker("a", aggregator.grpc), space.start_worker("b", proxy.address)]
        aggregator.await_round(1)
        proxy.bytes_per_second = 60_000
        self.finish(workers)
        self.assertGreater(workers[1].summary()["sent_payload_bytes"], rounds * 2 * 5 * proxy.bytes_per_second)
        self.assertEqual(workers[1].summary()["updates_excluded"], 0)

    def test_survives_slower_and_slower_link(self):
        space, rounds = self.workspace, 40
        aggregator = self.create(rounds)
        proxy = space.start_proxy(aggregator.grpc)
        workers = [space.start_worker("a", aggregator.grpc), space.start_worker("b", proxy.address)]
        aggregator.await_round(5)
        proxy.delay = 0.02
        for proxy.bytes_per_second in (40000, 20000, 10000):
            aggregator.await_round(min(aggregator.round() + 4, rounds))
        self.expect_the_undisturbed_run(workers, rounds)

    def test_misses_deadline_only_when_stalled(self):
        space, rounds = self.workspace, 100
        aggregator = space.create_run(rounds=rounds, start_workers=2, min_workers=1, round_deadline="0.3s")
        proxy = space.start_proxy(aggregator.grpc)
        workers = [space.start_worker("a", aggregator.grpc), space.start_worker("b", proxy.address)]
        aggregator.await_round(5)
        stalled = proxy.arm("stall", "UploadUpdate", "up")
        until(lambda: stalled.happened, "the upload is stalled")
        aggregator.await_state("b", "late")
        proxy.release()
        aggregator.await_state("b", "active")
        state = self.finish(workers)
        self.assertEqual(space.replay()["state"], state)
        late = workers[1].summary()
        self.assertGreater(late["updates_excluded"], 0)
        self.assertGreaterEqual(aggregator.metric("distro_aggregator_worker_included_updates_total", worker="b"),
                                late["updates_sent"] - late["updates_excluded"])


if __name__ == "__main__":
    processes.main()
