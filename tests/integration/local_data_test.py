"""A run of local data: each worker trains on a text of its own, all are evaluated on one that they share; updates count by the
tokens that a worker has; a client comes for two rounds, keeps nothing and goes."""
import json

import processes
from processes import ProcessTest

ROUNDS = 30
TEXTS = {"small": ("abcdefgh", 6000), "middle": ("12345678", 12000), "large": ("the cat ", 60000)}


class LocalDataTest(ProcessTest):
    def start(self, name, aggregator, *flags):
        space = self.workspace
        word, length = TEXTS.get(name, TEXTS["middle"])
        own = space.folder / f"{name}.txt"
        own.write_text(word * (length // len(word)))
        public, space.text = space.text, own
        try:
            return space.start_worker(name, aggregator.grpc, "--public_data", public, *flags)
        finally:
            space.text = public

    def header(self, round_number):
        return json.loads(self.workspace.distroctl("log", "show", round_number, "--data_dir", self.workspace.data_dir,
                                                   "--output", "json"))

    def test_trains_on_own_data(self):
        space = self.workspace
        aggregator = space.create_run("--lease", "5s", rounds=ROUNDS, start_workers=3, min_workers=1, probation_rounds=0,
                                      data="local", weighting="data", delta_clip=2)
        stranger = space.start_worker("stranger", aggregator.grpc)
        self.assertNotEqual(stranger.exit_code(), 0, "it has no public text")
        self.assertIn("--public_data", stranger.log())

        workers = [self.start(name, aggregator, "--hold_back", "60ms") for name in TEXTS]  # so that the client comes in time
        aggregator.await_round(3)
        client = self.start("client", aggregator, "--stateless", "--updates", "2")
        self.assertEqual(client.exit_code(), 0, client.log())
        self.assertEqual(client.summary()["updates_sent"], 2)
        self.finish(workers)

        for worker in workers:
            summary = worker.summary()
            self.assertLess(summary["last_own_evaluation_loss"], summary["first_own_evaluation_loss"])
            self.assertEqual(summary["last_evaluation_loss"], workers[0].summary()["last_evaluation_loss"], "of the same text")
            self.assertLessEqual(summary["deltas"]["delta_norm"], 2.001)
        members = {member["name"]: member for member in self.header(0)["members"]}
        self.assertEqual({name: member["weight"] for name, member in members.items()}, {"small": 4, "middle": 8, "large": 15})
        of_client = [member for t in range(ROUNDS) for member in self.header(t)["members"]
                     if member["name"] == "client" and member["segments"]]
        self.assertEqual([member["weight"] for member in of_client], [8, 8], "it counts from its first round on")
        self.assertEqual(space.replay()["state"], workers[0].summary()["state_hash"])


if __name__ == "__main__":
    processes.main()
