"""Runs as a whole: created from tensors that no C++ worker knows."""
import json

import processes
from processes import ProcessTest

OTHER_MODEL = {
    "format": "distro-tensors", "version": 1, "tensors": [
        {"name": "letters.weight", "shape": [256, 32], "init": "normal", "std": 0.02},
        {"name": "mix.weight", "shape": [96, 32], "init": "normal", "std": 0.1},
        {"name": "norm.weight", "shape": [32], "init": "ones"},
        {"name": "norm.bias", "shape": [32], "init": "zeros"}]}


class CreateTest(ProcessTest):
    """Of a model that this project does not know."""

    def test_from_a_manifest_a_run_is_created_that_cpp_workers_refuse(self):
        space = self.workspace
        manifest, initial = space.folder / "tensors.json", space.folder / "initial"
        manifest.write_text(json.dumps(OTHER_MODEL))
        space.distroctl("init-model", "--from-manifest", manifest, "--outside", "letters.weight", "--seed", 3, "--out", initial)
        aggregator = space.start_aggregator()
        refused = space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(), "--model", initial, "--insecure",
                                  code=2)
        self.assertIn('"workers": "python"', refused, "what to say in run.json")
        created = space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(workers="python"), "--model", initial,
                                  "--insecure")
        self.assertIn("created run", created)
        native = space.start_worker("native", aggregator.grpc)
        self.assertEqual(native.exit_code(), 3, native.log())
        self.assertIn("the run's model is a PyTorch module", native.log())
        self.assertIn("distro-train", native.log())

    def test_from_tensors_a_run_is_created_with_their_bits(self):
        space = self.workspace
        initial = space.folder / "initial"
        tensors = space.init_model() / "model.safetensors"
        space.distroctl("init-model", "--from-safetensors", tensors, "--outside", "model.embed_tokens.weight", "--out", initial)
        space.start_aggregator("--run", space.write_run(workers="python"), "--model", initial)
        self.assertEqual((space.data_dir / "snapshots" / "0.safetensors").read_bytes(), tensors.read_bytes())


if __name__ == "__main__":
    processes.main()
