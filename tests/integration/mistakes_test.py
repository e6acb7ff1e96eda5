"""Mistakes of creation, data, folders, credentials and clocks, each made once with real programs. What is printed is what
docs/troubleshooting.md says, word for word, with parts that differ in capitals; the exit codes are those of its tables.

No way to the aggregator: connection_test.py, and tests/server/service/connection_faults_test.cc.
"""
import array
import json
import pathlib
import re
import subprocess

import processes
from processes import ProcessTest

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text()
MOUNT = 'mkdir -p "$0" && mount -t tmpfs -o size=16k tmpfs "$0" && exec "$@"'
# What differs from case to case, and what the page writes for it.
PLACEHOLDERS = (
    (r"[0-9a-f]{64}", "FINGERPRINT"),
    (r"\b(test|other)-[0-9a-f]{8}\b", "RUN"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "DATE"),
    (r"127\.0\.0\.1:\d+", "HOST:PORT"),
    (r"is that of (worker|archiver) [a-z0-9]+", r"is that of \1 NAME"),
    (r"is for run \w+, and the aggregator at its address holds \w+", "is for run NAME, and the aggregator at its address holds NAME"),
)


class MistakesTest(ProcessTest):
    def setUp(self):
        super().setUp()
        self.made = 0

    def assert_on_page(self, said, begin):
        """`said` from `begin` to the end of its line or value is on the page."""
        self.assertIn(begin, said)
        words = re.match(r"[^\n]*", said[said.index(begin):])[0]
        words = re.split(r'" (?:remedy|kept_as)=|"$| \[distro/', words)[0]
        words = re.sub(rf"{re.escape(str(self.workspace.folder))}/[^ :]*", "PATH", words)
        for pattern, written in PLACEHOLDERS:
            words = re.sub(pattern, written, words)
        words = re.sub(r"(?<![\w.-])[1-9]\d*(?![\w-]| bits)", "N", words)
        self.assertIn(words, PAGE, "docs/troubleshooting.md does not have these words")

    def expect(self, process, code, begin):
        self.assertEqual(process.exit_code(), code, process.log())
        self.assert_on_page(process.log().splitlines()[-1], begin)

    def worker(self, address, *flags, name="w"):
        self.made += 1
        return self.workspace.start_worker(name, address, *flags, log_name=f"worker-{self.made}")

    def aggregator_ends(self, code, begin, *flags, prefix=(), **places):
        self.made += 1
        process = self.workspace.start(f"aggregator-{self.made}", [*prefix, *self.workspace.aggregator_command(*flags, **places)])
        self.expect(process, code, begin)

    def run_created(self, begin, code=2, **run):
        """`run create` of such a run ends with the code."""
        aggregator = self.workspace.start_aggregator(log_name=f"empty-{self.made}", data_dir=self.workspace.folder / f"empty-{self.made}")
        self.made += 1
        said = self.workspace.distroctl("run", "create", aggregator.grpc, "--run", self.workspace.write_run(**run), "--model",
                                        self.workspace.folder / "model", "--insecure", code=code)
        self.assert_on_page(said, begin)


class CreationTest(MistakesTest):
    def test_refuses_model_of_no_cpp_worker(self):
        model = self.workspace.init_model()
        config = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, "model_type": "gpt2"}))
        self.run_created("config.json: model_type")

    def test_sequences_longer_than_the_models_positions(self):
        self.workspace.init_model()
        self.run_created("sequence_length: ", sequence_length=64)

    def test_weights_of_another_model(self):
        model = self.workspace.init_model()
        config = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, "vocab_size": config["vocab_size"] + 2}))
        self.run_created("config.json: the model")

    def test_refuses_pointer_as_weights(self):
        weights = self.workspace.init_model() / "model.safetensors"
        weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 988097824\n")
        self.run_created(str(weights))

    def test_refuses_missing_safetensors(self):
        model = self.workspace.init_model()
        (model / "model.safetensors").rename(model / "pytorch_model.bin")
        self.run_created(str(model))


class DataTest(MistakesTest):
    def write(self, name, code, values):
        path = self.workspace.folder / name
        path.write_bytes(array.array(code, values).tobytes())
        return path

    def test_32_bit_tokens_in_a_bin_file(self):
        path = self.write("tokens.bin", "I", [20000 + i % 4000 for i in range(4000)])
        self.expect(self.worker("127.0.0.1:1", "--data", path), 2, "--data: ")

    def test_documents_that_are_not_tokens_yet(self):
        for name in ("corpus.jsonl", "corpus.parquet"):
            path = self.write(name, "B", b'{"text": "One."}')
            self.expect(self.worker("127.0.0.1:1", "--data", path), 2, "--data: ")

    def test_tokens_above_the_vocabulary(self):
        aggregator = self.workspace.create_run(start_workers=1)
        path = self.write("tokens.u16", "H", [i % 256 for i in range(4000)] + [777] + [1] * 99)
        self.expect(self.worker(aggregator.grpc, "--data", path), 2, str(path))

    def test_other_data_than_the_runs(self):
        space = self.workspace
        aggregator = space.create_run(start_workers=2)
        self.worker(aggregator.grpc, name="first")
        aggregator.await_state("first", "active")
        other = space.folder / "other.txt"
        other.write_text(processes.text(2))
        self.expect(self.worker(aggregator.grpc, "--data", other), 3, "data_fingerprint: ")

    def test_data_that_is_written_to_while_a_worker_trains_on_it(self):
        space = self.workspace
        aggregator = space.create_run(start_workers=1, rounds=100000)
        own = space.folder / "own.txt"
        own.write_text(space.text.read_text())
        worker = self.worker(aggregator.grpc, "--data", own)
        aggregator.await_round(2)
        with open(own, "a") as file:
            file.write("more")
        self.expect(worker, 2, str(own))

    def write_index(self, largest=255, **changes):
        shard = self.write("shard-00000.u16", "H", [*(i % 256 for i in range(3999)), largest])
        index = self.workspace.folder / "index.json"
        index.write_text(json.dumps({
            "format": "distro-tokens", "version": 1, "dtype": "uint16", "vocabulary_size": 256, "tokens": 4000,
            "fingerprint": "0" * 64, "tokenizer": {"kind": "bytes", "sha256": None, "end_token": None},
            "documents": {"name": "documents.u64", "count": 1, "sha256": "0" * 64},
            "shards": [{"name": shard.name, "tokens": 4000, "sha256": "0" * 64}], **changes}))
        return index, shard

    def test_half_a_copy_of_a_data_set(self):
        index, shard = self.write_index()
        shard.write_bytes(shard.read_bytes()[:-2])
        self.expect(self.worker("127.0.0.1:1", "--data", index), 2, "--data: ")

    def test_refuses_foreign_shard(self):
        index, _ = self.write_index()
        self.expect(self.worker("127.0.0.1:1", "--data", index), 2, str(self.workspace.folder))

    def test_data_of_a_tokenizer_with_more_tokens_than_the_model(self):
        space = self.workspace
        aggregator = space.create_run(start_workers=1)
        index, shard = self.write_index(50256, vocabulary_size=50257)
        fingerprint = subprocess.run([self.binaries.worker, "fingerprint", "--data", str(shard)], capture_output=True, text=True, check=True)
        index, shard = self.write_index(50256, vocabulary_size=50257, fingerprint=fingerprint.stdout.split()[0])
        self.expect(self.worker(aggregator.grpc, "--data", index), 2, str(shard))


class FolderTest(MistakesTest):
    def test_refuses_second_run(self):
        space = self.workspace
        first = space.create_run()
        self.aggregator_ends(3, "distro-aggregator: ")
        first.signal(15)
        first.exit_code()
        other = space.write_run(name="other")
        self.aggregator_ends(3, "distro-aggregator: ", "--run", other, "--model", space.folder / "model")

    def test_refuses_other_run_json(self):
        space = self.workspace
        first, model = space.create_run(rounds=100), space.folder / "model"
        first.signal(15)
        first.exit_code()
        for changes in ({"rounds": 200}, {"rounds": 100, "seed": 77}):
            self.aggregator_ends(3, "distro-aggregator: ", "--run", space.write_run(**changes), "--model", model)
        config = model / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text())))
        space.start_aggregator("--run", space.write_run(rounds=100), "--model", model, log_name="again")

    def test_keeps_state_of_other_run(self):
        space = self.workspace
        first, state = space.create_run(), space.folder / "state"
        self.assertEqual(self.worker(first.grpc, "--state_dir", state, "--updates", 2).exit_code(), 0)
        second = space.start_aggregator("--run", space.write_run(name="other"), "--model", space.folder / "model", log_name="second",
                                        data_dir=space.folder / "second")
        worker = self.worker(second.grpc, "--state_dir", state, "--updates", 2)
        self.assertEqual(worker.exit_code(), 0)
        self.assert_on_page(worker.log(), "the worker's state is set aside")
        (aside,) = state.glob("worker.state.test-*.aside")
        (state / "worker.state").unlink()
        aside.rename(state / "worker.state")
        again = self.worker(first.grpc, "--state_dir", state, "--updates", 2)
        self.assertEqual(again.exit_code(), 0)
        self.assertIn("continuing with the worker's state", again.log())

    def test_refuses_second_worker(self):
        space = self.workspace
        aggregator, state = space.create_run(), space.folder / "state"
        self.worker(aggregator.grpc, "--state_dir", state, name="first")
        aggregator.await_state("first", "active")
        self.expect(self.worker(aggregator.grpc, "--state_dir", state), 2, "--state_dir: ")

    def test_refuses_foreign_copy(self):
        space = self.workspace
        self.assertEqual(space.start_archiver(space.create_run().grpc, "--once").exit_code(), 0)
        second = space.start_aggregator("--run", space.write_run(name="other"), "--model", space.folder / "model", log_name="second",
                                        data_dir=space.folder / "second")
        self.expect(space.start_archiver(second.grpc, "--once", log_name="second-archiver"), 3, "--data_dir: ")


    def test_outputs_that_cannot_be_written(self):
        space = self.workspace
        file = space.folder / "a-file"
        file.touch()
        self.expect(self.worker("127.0.0.1:1", "--checkpoint_dir", file), 2, "--checkpoint_dir: ")
        self.expect(self.worker("127.0.0.1:1", "--summary", space.folder / "gone" / "summary.json"), 2, "--summary: ")
        archiver = space.start_archiver("127.0.0.1:1", "--publish_dir", "/proc/models")
        self.assertEqual(archiver.exit_code(), 2, archiver.log())
        self.assert_on_page(archiver.log().splitlines()[-1].replace("/proc/models", f"{space.folder}/models"), "--publish_dir: ")


class FullDiskTest(MistakesTest):
    """A disk that is full at the start: a tmpfs of 16 KiB in a namespace of the program's own."""

    def setUp(self):
        super().setUp()
        self.full = self.workspace.folder / "full"
        self.prefix = ("unshare", "-rm", "sh", "-c", MOUNT, self.full)
        try_it = subprocess.run([*self.prefix, "true"], capture_output=True, text=True)
        if try_it.returncode != 0:
            self.skipTest(f"a tmpfs cannot be mounted here: {try_it.stderr.strip()}")

    def test_of_an_aggregator(self):
        space = self.workspace
        self.aggregator_ends(1, "distro-aggregator: ", "--run", space.write_run(), "--model", space.init_model(), prefix=self.prefix,
                             data_dir=self.full / "data")

    def test_of_a_worker_and_an_archiver(self):
        space = self.workspace
        aggregator = space.create_run(rounds=8)
        worker = [*self.prefix, space.binaries.worker, "--aggregator", aggregator.grpc, "--data", space.text, "--insecure", "--state_dir",
                  self.full / "state"]
        self.expect(space.start("worker", worker), 1, f"{self.full}/state/")
        archiver = [*self.prefix, space.binaries.archiver, "--aggregator", aggregator.grpc, "--insecure", "--data_dir",
                    self.full / "archive"]
        self.expect(space.start("archiver", archiver), 1, f"{self.full}/archive/")
        trains = space.start_worker("trains", aggregator.grpc)
        self.assertEqual(trains.exit_code(), 0, trains.log())
        publisher = [*self.prefix, space.binaries.archiver, "--aggregator", aggregator.grpc, "--insecure", "--once", "--data_dir",
                     space.folder / "archive", "--publish_dir", self.full / "models"]
        self.expect(space.start("publisher", publisher), 1, "--publish_dir: ")

    def test_with_free_bytes_and_no_inode(self):
        space = self.workspace
        prefix = ("unshare", "-rm", "sh", "-c", 'mkdir -p "$0" && mount -t tmpfs -o nr_inodes=2 tmpfs "$0" && exec "$@"', self.full)
        archiver = [*prefix, space.binaries.archiver, "--aggregator", "127.0.0.1:1", "--insecure", "--data_dir", self.full / "archive"]
        self.expect(space.start("archiver", archiver), 1, "--data_dir: ")
        self.aggregator_ends(1, "distro-aggregator: open ", prefix=prefix, data_dir=self.full / "data")

    def test_of_checkpoints_ends_no_training(self):
        space = self.workspace
        aggregator = space.create_run(rounds=8, start_workers=1)
        summary = space.folder / "summary.json"
        worker = [*self.prefix, space.binaries.worker, "--aggregator", aggregator.grpc, "--data", space.text, "--insecure", "--checkpoint_dir",
                  self.full / "models", "--checkpoint_interval_rounds", "2", "--summary", summary]
        process = space.start("worker", worker)
        self.expect(process, 1, "checkpoint_dir: ")
        self.assertEqual(process.log().count("checkpoint not written"), 4)
        self.assertEqual(json.loads(summary.read_text())["rounds_applied"], 8)


class CredentialsTest(MistakesTest):
    def setUp(self):
        super().setUp()
        space = self.workspace
        self.tls, self.tokens = space.folder / "tls", space.folder / "tokens"
        space.distroctl("certs", "--out", self.tls, "--host", "127.0.0.1")

    def invite(self, name, *flags, tokens=None):
        out = self.workspace.folder / f"{name}-{self.made}.invite"
        self.made += 1
        self.workspace.distroctl("invite", name, "--aggregator", "127.0.0.1:1", "--ca", self.tls / "ca.pem", "--tokens_file",
                                 tokens or self.tokens, "--out", out, *flags)
        return out

    def token_of(self, invite):
        path = invite.with_suffix(".token")
        path.write_text(re.search(r"^token (\S+)$", invite.read_text(), re.MULTILINE)[1])
        return path

    def start(self, *prefix, log_name="aggregator"):
        space = self.workspace
        port_file = space.folder / f"{log_name}.ports"
        command = [*prefix, self.binaries.aggregator, "--data_dir", space.folder / log_name, "--listen", "127.0.0.1:0", "--http",
                   "127.0.0.1:0", "--port_file", port_file, "--cert", self.tls / "server.pem", "--key", self.tls / "server-key.pem",
                   "--tokens_file", self.tokens, "--run", space.write_run(), "--model", space.folder / "model"]
        space.processes.append(processes.Aggregator(log_name, command, space.folder, port_file))
        return space.processes[-1].await_ports()

    def joins(self, aggregator, *flags):
        self.made += 1
        return self.workspace.start(f"worker-{self.made}", [self.binaries.worker, "--aggregator", aggregator.grpc, "--data",
                                                            self.workspace.text, *flags])

    def test_tokens_and_invites_of_somebody_else(self):
        space = self.workspace
        space.init_model()
        own, archiver = self.invite("w1"), self.invite("archiver", "--role", "archiver")
        other = self.invite("w1", tokens=space.folder / "tokens-of-another-run")
        another_run = self.invite("w3", "--run", space.write_run(name="other"))
        aggregator = self.start()
        self.expect(self.joins(aggregator, "--invite", other), 8, "the token is not known")
        token = ("--ca", self.tls / "ca.pem", "--token_file")
        self.expect(self.joins(aggregator, *token, self.token_of(own), "--name", "w2"), 8, "the credential is that of worker w1, the")
        self.expect(self.joins(aggregator, *token, self.token_of(archiver), "--name", "archiver"), 8, "the credential is that of archiver")
        self.expect(self.joins(aggregator, "--invite", another_run), 3, "--invite: is for run")
        self.expect(self.joins(aggregator, "--invite", archiver), 2, "--invite: ")
        expired = space.folder / "expired.invite"
        expired.write_text(own.read_text().replace("\ntoken", "\nexpires 2020-01-01T00:00:00Z\ntoken", 1))
        self.expect(self.joins(aggregator, "--invite", expired), 8, "--invite: ")
        worker_as_archiver = [self.binaries.archiver, "--invite", own, "--aggregator", aggregator.grpc, "--data_dir", space.folder / "copy"]
        self.expect(space.start("archiver", worker_as_archiver), 2, "--invite: ")


if __name__ == "__main__":
    processes.main()
