"""Two processes of torch.distributed as one worker, beside one in C++: all have the same bits, and none hangs when another ends."""
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import processes  # noqa: E402
from processes import ProcessTest, Worker  # noqa: E402
from page import row_of  # noqa: E402

PYTHON = os.environ["DISTRO_TORCH_PYTHON"]
os.environ["PYTHONPATH"] = os.environ["DISTRO_PYTHON_PACKAGE"]


class PythonRanksTest(ProcessTest):
    def create_run(self, **overrides):
        return self.workspace.create_run(**{"samples_per_worker": 4, "local_steps": 2, **overrides})

    def start_ranks(self, aggregator, *flags, of_rank=((), ())):
        """Two processes that are one worker."""
        space = self.workspace
        ranks = []
        for rank in (0, 1):
            name = f"rank-{rank}"
            command = [PYTHON, "-B", HERE / "ranks.py", "--aggregator", aggregator.grpc, "--name", "python", "--rank", rank,
                       "--text", space.text, "--config", space.folder / "config.json", "--store", space.folder / "store",
                       "--summary", space.folder / f"{name}.json", *flags, *of_rank[rank]]
            ranks.append(Worker(name, command, space.folder))
            space.processes.append(ranks[-1])
        return ranks

    def train_beside_a_worker_in_cpp(self, *flags, **overrides):
        aggregator = self.create_run(rounds=20, start_workers=2, min_workers=2, **overrides)
        native = self.workspace.start_worker("native", aggregator.grpc)
        first, second = self.start_ranks(aggregator, *flags)
        self.finish([first, native])  # equal state hashes
        self.assertEqual(second.exit_code(), 0, second.log())
        readings, of_second = first.summary(), second.summary()
        self.assertEqual(readings["hashes"], of_second["hashes"], "the same bits in both after every round")
        self.assertGreaterEqual(len(set(readings["hashes"])), 20)
        self.assertTrue(of_second["done"])
        self.assertEqual([readings["threads_left"], of_second["threads_left"]], [0, 0], "a thread of gloo could outlive Python")
        given = readings["given"] + of_second["given"]
        self.assertEqual(len(given), len(set(given)), "a sample is read by one of them")
        self.assertIn("samples=2", first.out_path.read_text())
        self.assertAlmostEqual(readings["last_evaluation_loss"], native.summary()["last_evaluation_loss"],
                               delta=0.05 if "bfloat16" in flags else 1e-5, msg="both have a part of the held-out samples")
        return given

    def test_forms_one_worker(self):
        self.assertEqual(len(self.train_beside_a_worker_in_cpp()), 20 * 8)

    def test_with_a_bf16_module(self):
        self.train_beside_a_worker_in_cpp("--dtype", "bfloat16")

    def test_with_signs(self):
        self.train_beside_a_worker_in_cpp("--signs", method="signs", local_steps=None, overlap=1)

    def expect_both_end(self, failing):
        space = self.workspace
        aggregator = self.create_run(rounds=1000)
        flags = [(), ()]
        flags[failing] = ("--die_at", 7)
        ranks = self.start_ranks(aggregator, "--state_dir", space.folder / "state", of_rank=flags)
        for process in ranks:
            self.assertNotEqual(process.exit_code(90), 0)
        self.assertIn("MemoryError", ranks[failing].log())
        self.assertTrue(list((space.folder / "state").glob("inner-*.pt")), "rank 0 has kept its state")

    def test_rank_0_fails(self):
        self.expect_both_end(0)

    def test_rank_1_fails(self):
        self.expect_both_end(1)

    def test_gradients_that_nobody_averages(self):
        for process in self.start_ranks(self.create_run(), "--alone"):
            self.assertEqual(process.exit_code(), 1, process.log())
            message = re.search(r"ValueError: (model: .*)$", process.log(), re.M)[1]
            self.assertEqual(row_of(message), "ValueError", message)

    def test_hears_refusal(self):
        aggregator = self.create_run(data_fingerprint="0" * 64)
        for process in self.start_ranks(aggregator):
            self.assertEqual(process.exit_code(), 5, process.log())
            self.assertIn("ended by OtherData", process.log())


if __name__ == "__main__":
    processes.main()
