"""Examples as users start them: two workers each, an aggregator, equal states at the end and a lower loss."""
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
from processes import ProcessTest  # noqa: E402

PYTHON = os.environ["DISTRO_TORCH_PYTHON"]
EXAMPLES = HERE.parent.parent / "examples" / "python"
os.environ["PYTHONPATH"] = os.environ["DISTRO_PYTHON_PACKAGE"]
os.environ["OMP_NUM_THREADS"] = "1"  # two workers share the test's cores


class ExampleTest(ProcessTest):
    """`script` is the example's file."""
    script = ""

    def run_to_its_end(self, name, *arguments):
        done = self.start_script(name, *arguments)
        self.assertEqual(done.exit_code(), 0, done.log())
        return done

    def start_script(self, name, *arguments):
        return self.workspace.start(name, [PYTHON, "-B", EXAMPLES / self.script, *arguments])

    def start_run(self, initial, **overrides):
        """An aggregator whose run takes two workers in Python."""
        run = self.workspace.write_run(**{"workers": "python", "start_workers": 2, "min_workers": 2, "seed": 3, **overrides})
        return self.workspace.start_aggregator("--run", run, "--model", initial)

    def assert_equal_states(self, workers):
        """All ended with the parameters that the aggregator's log gives."""
        for worker in workers:
            self.assertEqual(worker.exit_code(), 0, worker.log())
        states = {worker.name: re.search(r"^done: state (\S+)$", worker.out_path.read_text(), re.M)[1] for worker in workers}
        self.assertEqual(set(states.values()), {self.workspace.replay()["state"]}, states)

    def losses(self, worker):
        """Of each round, as the example or transformers.Trainer prints it."""
        return [float(loss) for loss in re.findall(r"\bloss'?:? '?(\d+\.\d+)", worker.out_path.read_text())]

    def assert_learned(self, worker, by, rounds):
        losses = self.losses(worker)
        self.assertEqual(len(losses), rounds)
        self.assertLess(sum(losses[-3:]) / 3, sum(losses[:3]) / 3 - by, losses)
