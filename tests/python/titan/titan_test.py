"""examples/python/titan.py: models of torchtitan, each by two workers of one process and of several, which have the same bits."""
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), os.environ["DISTRO_PYTHON_PACKAGE"]]
from examples import PYTHON, ExampleTest  # noqa: E402
import processes  # noqa: E402
from distro_train._place import Place  # noqa: E402

ROUNDS = 3


class TitanTest(ExampleTest):
    def train(self, model, count, *flags):
        """A worker of one process, and one of `count`."""
        space = self.workspace
        init = space.start("init", ["env", "-C", space.folder, PYTHON, "-B", HERE / "on_cpu.py", model])
        self.assertEqual(init.exit_code(), 0, init.log())
        aggregator = self.start_run(space.folder / "initial", rounds=ROUNDS, samples_per_worker=4, sequence_length=32, local_steps=2, warmup_rounds=1,
                                    segment_blocks=None)
        workers = []
        for name, number, own in (("one", 1, ()), ("several", count, flags)):
            place = Place(aggregator.grpc, name, str(space.folder), saves=True)
            (variable, value), = place.environment().items()
            workers.append(space.start(name, [
                "env", f"{variable}={value}", PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", number, HERE / "on_cpu.py",
                "--module", "titan", "--config", model, "--data", space.text, "--dump_folder", space.folder / name,
                "--training.seq_len", "32", "--training.local_batch_size", "2", *own]))
        self.assert_equal_states(workers)
        saved = [(space.folder / worker.name / "trained" / "model.safetensors").read_bytes() for worker in workers]
        self.assertEqual(*saved)
        losses = [float(re.search(rf"round {ROUNDS}/{ROUNDS}  loss (\S+)", worker.out_path.read_text())[1]) for worker in workers]
        self.assertAlmostEqual(*losses, delta=0.2, msg="of other samples")

    def test_llama_by_fsdp2_and_tensor_parallelism(self):
        self.train("llama3_debugmodel", 4, "--parallelism.tensor_parallel_degree", "2")

    def test_llama_in_a_pipeline(self):
        self.train("llama3_debugmodel", 2, "--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule", "1F1B")

    def test_mixture_of_experts(self):
        self.train("deepseek_v3_debugmodel", 2)


if __name__ == "__main__":
    processes.main()
