"""The programs of bench/gpu/first_day that can run without a GPU, over real processes: workers on CPUs."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from binaries import BIN  # noqa: E402
from first_day_module import GPU, ROOT  # noqa: E402

import learning  # noqa: E402
import processes  # noqa: E402
import replicas  # noqa: E402
import steps  # noqa: E402


def run(name, *arguments):
    return steps.run(steps.Step(name, (sys.executable, "-B", GPU / name, *arguments), 1, 150))


class ReplicasTest(unittest.TestCase):
    def test_has_equal_bits_after_rounds(self):
        for method in replicas.METHODS:
            outcome = run("replicas.py", "--bin", BIN, "--method", method, "--devices", "cpu,cpu", "--rounds", 4)
            self.assertEqual(outcome["state"], "passed", outcome)
            row, = outcome["rows"]
            self.assertEqual((row["reported"], row["different"]), (8, 0))
            self.assertEqual(set(row["hashes"]), {"cpu-0", "cpu-1", "replay"})
            self.assertEqual(len(set(row["hashes"].values())), 1)
            self.assertEqual(len(row["held_out_losses"]), 2)
            self.assertGreater(row["phases"]["forward_backward"], 0)

    def test_hashes_that_are_missing_or_differ_are_told(self):
        space = processes.Workspace(processes.programs_in(BIN))
        self.addCleanup(space.close)
        workers = replicas.train(space, "signs", ["cpu", "cpu"], 2)
        self.assertEqual(replicas.compare(space, workers, 2)[1], [])
        self.assertRegex(replicas.compare(space, workers, 3)[1][0], "4 hashes were reported, not 2 in each of 3 rounds")
        summary = space.folder / "cpu-1.json"
        summary.write_text(summary.read_text().replace(workers[1].summary()["state_hash"], "0" * 16))
        self.assertRegex(replicas.compare(space, workers, 2)[1][0], "the last hashes differ")
        found = workers[1].summary()
        summary.write_text(json.dumps({**found, "last_evaluation_loss": 1.03 * found["last_evaluation_loss"]}))
        self.assertRegex(replicas.compare(space, workers, 2)[1][-1], "the held-out losses differ")

    def test_names_worker_that_cannot_start(self):
        outcome = run("replicas.py", "--bin", BIN, "--method", "signs", "--devices", "cpu,none", "--rounds", 2)
        self.assertEqual(outcome["state"], "failed")
        self.assertIn("none-1 ended with", outcome["tail"])


class LearningTest(unittest.TestCase):
    def test_counts_tokens_of_all_workers(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_text("the cat sat on a mat and ran to it. " * 3000)
            outcome = run("learning.py", "--bin", BIN, "--config", ROOT / "examples/demo/config.json", "--text", text, "--method", "deltas",
                          "--seconds", 0, "--device", "cpu", "--samples", 1, "--sequence", 16)
        self.assertEqual(outcome["state"], "passed", outcome)
        for i, row in enumerate(outcome["rows"], 1):
            self.assertEqual((row["step"], row["tokens"]), (i * learning.INTERVAL, i * learning.INTERVAL * learning.WORKERS * 16))
            self.assertGreater(row["received_bytes"], row["sent_bytes"])
        self.assertTrue(outcome["rows"])

    def test_points_sum_what_the_lines_have(self):
        lines = [{"round": i, "time": 10.0 + i, "tokens": 8, "sent_bytes": 2, "received_bytes": 3, "seconds": {"wait": 0.5}} for i in range(4)]
        lines[0]["held_out_loss"], lines[3]["held_out_loss"] = 5.0, 4.0
        self.assertEqual(learning.points(lines), [{"step": 4, "held_out_loss": 4.0, "seconds": 3.0, "tokens": 32 * learning.WORKERS, "sent_bytes": 8,
                                                   "received_bytes": 12, "phases": {"wait": 1.5}}])


if __name__ == "__main__":
    unittest.main()
