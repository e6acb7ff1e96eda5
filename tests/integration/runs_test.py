"""Runs as a whole: created from tensors that no C++ worker knows; with a tokenizer that travels."""
import hashlib
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


TOKENIZER = json.dumps({"version": "1.0", "model": {"type": "BPE"}}).encode() * 40000  # several frames
COMPANIONS = {"tokenizer.json": TOKENIZER, "tokenizer_config.json": b"{}", "chat_template.jinja": b"{{ messages }}",
              "generation_config.json": b'{"eos_token_id": 0}', "special_tokens_map.json": b"{ }", "tokenizer.model": b"\0model"}


class CompanionsTest(ProcessTest):
    def create(self, **overrides):
        """A run through `run create`, of a folder with COMPANIONS and a file that does not travel."""
        space = self.workspace
        space.beside_model = {**COMPANIONS, "README.md": b"stays"}
        initial = space.init_model()
        aggregator = space.start_aggregator()
        space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(**overrides), "--model", initial, "--insecure")
        return aggregator

    def assert_companions(self, folder):
        names = {path.name for path in folder.iterdir()}
        self.assertEqual(names, {*COMPANIONS, "config.json", "model.safetensors"}, folder)
        for name, content in COMPANIONS.items():
            self.assertEqual((folder / name).read_bytes(), content, f"{folder}: {name}")

    def test_they_reach_every_checkpoint_unchanged(self):
        space = self.workspace
        aggregator = self.create(rounds=12)
        archiver = space.start_archiver(aggregator.grpc, "--snapshot_interval_rounds", 5)
        worker = space.start_worker("w", aggregator.grpc, "--checkpoint_dir", space.folder / "saved",
                                    "--checkpoint_interval_rounds", 6)
        self.finish([worker])
        self.assertEqual(archiver.exit_code(), 0)
        for folder in (space.folder / "saved" / "round-6", space.folder / "published" / "round-12"):
            self.assert_companions(folder)
        for name, content in COMPANIONS.items():
            self.assertEqual((space.folder / "saved" / name).read_bytes(), content)

    def test_a_restart_keeps_them_and_a_damaged_one_is_named(self):
        space = self.workspace
        aggregator = self.create(rounds=4)
        aggregator.kill()
        again = space.start_aggregator(log_name="again")
        self.finish([space.start_worker("w", again.grpc, "--checkpoint_dir", space.folder / "saved")])
        self.assert_companions(space.folder / "saved")
        again.kill()
        (space.data_dir / "companions" / "tokenizer.json").write_bytes(b"other")
        damaged = space.start("damaged", space.aggregator_command())
        self.assertEqual(damaged.exit_code(), 4)
        self.assertIn("companions/tokenizer.json", damaged.log())

    def test_workers_of_another_tokenizer_are_refused(self):
        space = self.workspace
        pinned = hashlib.sha256(TOKENIZER).hexdigest()
        aggregator = self.create(tokenizer_sha256=pinned, rounds=4)
        text = space.start_worker("text", aggregator.grpc)
        self.assertEqual(text.exit_code(), 3, text.log())
        self.assertIn(f"this worker's tokens are bytes, the run's are of {pinned}", text.log())
        self.assertIn("distro-data --tokenizer", text.log())
        indexes = {name: self.write_index(name, sha256) for name, sha256 in (("right", pinned), ("wrong", "a" * 64))}
        wrong = self.start_with_data("wrong", aggregator, indexes["wrong"])
        self.assertEqual(wrong.exit_code(), 3, wrong.log())
        self.assertIn(f"of the tokenizer {'a' * 64}", wrong.log())
        right = self.start_with_data("right", aggregator, indexes["right"])
        self.finish([right])

    def start_with_data(self, name, aggregator, data):
        """Of a flag that is given twice the last counts."""
        return self.workspace.start_worker(name, aggregator.grpc, "--data", data)

    def write_index(self, name, sha256):
        """The workspace's text as 16-bit tokens, with an index that says what made them."""
        folder = self.workspace.folder / name
        folder.mkdir()
        tokens = self.workspace.text.read_bytes()
        shard = b"".join(token.to_bytes(2, "little") for token in tokens)
        (folder / "0.u16").write_bytes(shard)
        (folder / "d").write_bytes(len(tokens).to_bytes(8, "little"))
        said = self.workspace.start(f"{name}-fingerprint", [self.binaries.worker, "fingerprint", "--data", self.workspace.text])
        self.assertEqual(said.exit_code(), 0, said.log())
        (folder / "index.json").write_text(json.dumps({
            "format": "distro-tokens", "version": 1, "dtype": "uint16", "vocabulary_size": 256, "tokens": len(tokens),
            "fingerprint": said.out_path.read_text()[:64],
            "tokenizer": {"kind": "tokenizer.json", "sha256": sha256, "end_token": None},
            "documents": {"name": "d", "count": 1, "sha256": hashlib.sha256((folder / "d").read_bytes()).hexdigest()},
            "shards": [{"name": "0.u16", "tokens": len(tokens), "sha256": hashlib.sha256(shard).hexdigest()}]}))
        return folder / "index.json"

    def test_a_folder_with_another_tokenizer_than_the_pinned_makes_no_run(self):
        space = self.workspace
        space.beside_model = {"tokenizer.json": b"another"}
        initial = space.init_model()
        aggregator = space.start_aggregator()
        refused = space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(tokenizer_sha256="a" * 64), "--model",
                                  initial, "--insecure", code=2)
        self.assertIn("tokenizer_sha256", refused)


if __name__ == "__main__":
    processes.main()
