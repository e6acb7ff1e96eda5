"""examples/python/nanogpt.py: a plain module, with what a worker may choose for itself; and sharded.py, the same in parts."""
import json

from examples import EXAMPLES, PYTHON, ExampleTest  # which says where the next one is
import processes

ROUNDS = 40
SIZE = ("--layers", "2", "--width", "32", "--heads", "2", "--positions", "32")


class NanogptTest(ExampleTest):
    """What the tests share."""
    script = "nanogpt.py"

    def setUp(self):
        super().setUp()
        self.initial = self.workspace.folder / "initial"
        self.run_to_its_end("init", "init", "--out", self.initial, *SIZE)

    def train(self, name, aggregator, *flags):
        return self.start_script(name, "train", "--aggregator", aggregator.grpc, "--insecure", "--model", self.initial,
                                 "--data", self.workspace.text, "--name", name, "--out", self.workspace.folder / name, *flags)

    def start(self):
        return self.start_run(self.initial, rounds=ROUNDS, peak_learning_rate=0.02)


class EagerTest(NanogptTest):
    def test_with_half_precision_small_batches_and_recomputed_layers(self):
        aggregator = self.start()
        workers = [self.train("plain", aggregator),
                   self.train("saving", aggregator, "--autocast", "--batch_size", "2", "--recompute")]
        self.assert_equal_states(workers)
        for worker in workers:
            self.assert_learned(worker, 0.5, ROUNDS)
        config = json.loads((self.workspace.folder / "plain" / "config.json").read_text())
        self.assertEqual((config["layers"], config["distro_outside"]), (2, ["positions.weight", "tokens.weight"]))
        weights = [(self.workspace.folder / worker.name / "model.safetensors").read_bytes() for worker in workers]
        self.assertEqual(*weights)


class ShardedTest(NanogptTest):
    def test_in_four_processes(self):
        aggregator = self.start()
        command = [PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "4", EXAMPLES / "sharded.py",
                   "--tensor_parallel", "2", "--aggregator", aggregator.grpc, "--insecure", "--model", self.initial, "--data",
                   self.workspace.text, "--name", "sharded", "--out", self.workspace.folder / "sharded"]
        workers = [self.train("plain", aggregator), self.workspace.start("sharded", command)]
        self.assert_equal_states(workers)
        self.assert_learned(workers[1], 0.5, ROUNDS)
        weights = [(self.workspace.folder / worker.name / "model.safetensors").read_bytes() for worker in workers]
        self.assertEqual(*weights)


class CompiledTest(NanogptTest):
    def test_with_a_compiled_forward(self):
        aggregator = self.start()
        workers = [self.train("plain", aggregator), self.train("compiled", aggregator, "--compile")]
        self.assert_equal_states(workers)
        self.assert_learned(workers[1], 0.5, ROUNDS)


if __name__ == "__main__":
    processes.main()
