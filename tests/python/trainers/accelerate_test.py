"""A loop of accelerate in two processes, as one worker beside one in C++."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from examples import PYTHON, ExampleTest  # noqa: E402
import processes  # noqa: E402


class AccelerateTest(ExampleTest):
    def test_beside_a_worker_in_cpp(self):
        space = self.workspace
        aggregator = space.create_run(rounds=12, start_workers=2, min_workers=2, samples_per_worker=4, local_steps=2)
        native = space.start_worker("native", aggregator.grpc)
        loop = space.start("loop", [PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", HERE / "accelerate_loop.py",
                                    "--aggregator", aggregator.grpc, "--name", "loop", "--text", space.text, "--config", space.folder / "config.json"])
        for worker in (loop, native):
            self.assertEqual(worker.exit_code(), 0, worker.log())
        self.assertEqual(re.findall(r"^done: state (\S+)$", loop.out_path.read_text(), re.M), [native.summary()["state_hash"]])


if __name__ == "__main__":
    processes.main()
