"""200 rounds of four worker processes, while one is killed, one stands still past the deadline and a fifth joins midway:
all remaining replicas have the same bits, and so does the log replayed from round 0."""
import processes
from processes import ProcessTest, until

ROUNDS = 200


class FaultsTest(ProcessTest):
    def test_replicas_stay_identical_while_one_dies_one_is_late_and_one_joins(self):
        space = self.workspace
        aggregator = space.create_run("--lease", "10m", rounds=ROUNDS, start_workers=4, min_workers=1,
                                      round_deadline="0.3s")
        workers = {name: space.start_worker(name, aggregator.grpc) for name in ("a", "b", "dies", "slow")}

        aggregator.await_round(20)
        workers.pop("dies").kill()
        workers["slow"].freeze()
        self.await_missed(aggregator, "slow")
        workers["slow"].thaw()
        for name in ("slow", "a", "b"):  # on a busy machine these miss deadlines, too
            aggregator.await_state(name, "active")
        self.await_missed(aggregator, "dies")

        # The others stand still while the fifth one starts: how long that takes is up to the machine.
        workers["fifth"] = space.start_worker("fifth", aggregator.grpc)
        for name in ("a", "b", "slow"):
            workers[name].freeze()
        at = aggregator.round()
        self.assertLess(at, ROUNDS - 20, "too few rounds are left")
        aggregator.await_state("fifth", "active")
        self.assertLessEqual(aggregator.round(), at + 1)
        for name in ("a", "b", "slow"):
            workers[name].thaw()

        state_hash = self.finish(workers.values())
        included = {name: aggregator.metric("distro_aggregator_worker_included_updates_total", worker=name) for name in workers}
        self.check_workers(workers, included, at)
        self.check_rounds(aggregator)
        replay = space.replay()
        self.assertEqual(replay["state"], state_hash)
        self.assertTrue(replay["rounds"].startswith(f"{ROUNDS} of {ROUNDS}, "), replay)
        self.assertTrue(replay["members"].endswith(" 0 differ"), replay)

    def await_missed(self, aggregator, worker):
        """A round closes without it: it is late, and after a silence suspect."""
        until(lambda: aggregator.alive() and aggregator.changes(worker)[-1] in ("late", "suspect"), f"{worker} is missed")

    def check_workers(self, workers, included, joined_at):
        for name, worker in workers.items():
            self.assertEqual(worker.summary()["next_round"], ROUNDS)
            # Whole updates that the worker saw included are those that the aggregator counted, but partly included ones.
            summary = worker.summary()
            self.assertGreater(included[name], 0, name)
            self.assertLessEqual(summary["updates_sent"] - summary["updates_excluded"], included[name], name)
        self.assertLessEqual(included["fifth"], ROUNDS - joined_at)
        self.assertEqual(workers["fifth"].summary()["rounds_applied"], ROUNDS)  # from round 0 on, out of the log

    def check_rounds(self, aggregator):
        rounds = aggregator.rounds()
        self.assertEqual([number for number, _ in rounds], list(range(ROUNDS)))
        # Nobody waited for the dead one again, and every other round that went to its deadline did so for a worker that was
        # active until then.
        dies = aggregator.changes("dies")
        self.assertEqual(dies[:4], ["joining", "synced", "active", "late"])
        self.assertNotIn("active", dies[4:])
        late = sum(aggregator.changes(name).count("late") for name in ("a", "b", "dies", "slow", "fifth"))
        by_deadline = [number for number, reason in rounds if reason == "deadline"]
        self.assertGreaterEqual(len(by_deadline), 1)
        self.assertLessEqual(len(by_deadline), late)
        slow = aggregator.changes("slow")
        self.assertIn("active", slow[slow.index("late"):])


if __name__ == "__main__":
    processes.main()
